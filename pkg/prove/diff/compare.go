package diff

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A comparison is the state of comparing two programs.
type comparison struct {
	*layout
	file *File

	text     map[int32]*textDiff // by function of A
	meta     map[int32]string    // by function of A: how the function table differs
	paths    map[[2]string]int
	refers   []ref    // must correspond; after types were walked by address
	targetsB []uint32 // all that is referred to in B, by address
	mask     []bool
	numbers  map[uint64]bool // words of .noptrdata that are addresses, compared as such

	explained []uint64 // bit set over the sections of constants: bytes that hold addresses, compared as such
	problems  []dataDiff
}

// compareExes compares two programs that are not the same bytes.
func compareExes(a, b *exe, f *File) error {
	if a.machine != b.machine {
		f.add(Different, "platform", "%s and %s", a.machine, b.machine)
		return nil
	}
	if a.segments != b.segments {
		f.add(Different, "segments", "are loaded in another way")
	}
	if err := cmp.Or(a.checkFIPS(), b.checkFIPS()); err != nil {
		return err
	}
	c := &comparison{
		layout: &layout{a: a, b: b}, file: f, numbers: map[uint64]bool{}, explained: make([]uint64, (a.constants[len(a.constants)-1].end()-a.constants[0].addr)/64+1),
		text: map[int32]*textDiff{}, meta: map[int32]string{}, paths: map[[2]string]int{},
	}
	c.findHoles()
	compareInfo(a, b, f)
	if a.goVersion != b.goVersion {
		return nil // compareInfo has reported it
	}
	c.compareUnloaded()
	c.matchFunctions()
	c.compareFunctions()
	if err := c.pairSections(); err != nil {
		f.add(Different, "data", "%v", err)
		return nil
	}
	for _, s := range a.sections {
		if !slices.Contains(a.constants, s) {
			c.misfits(c.align(s, c.refers))
		}
	}
	if err := c.compareMasks(); err != nil {
		return err
	}
	c.compareModules()
	c.compareVariables()
	c.compareInitTasks()
	c.compareFIPS()
	types := &typeWalker{comparison: c, seen: map[uint32]uint32{}}
	types.links()
	slices.SortFunc(c.refers, func(x, y ref) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	for i, r := range slices.Clip(c.refers) {
		if i == 0 || c.refers[i-1].a != r.a {
			types.maybe(uint64(r.a), uint64(r.b))
		}
	}
	slices.SortFunc(c.refers, func(x, y ref) int {
		return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b), cmp.Compare(x.fn, y.fn))
	})
	c.refers = slices.Compact(c.refers)
	for _, r := range c.refers {
		c.targetsB = append(c.targetsB, r.b)
	}
	slices.Sort(c.targetsB)
	c.targetsB = slices.Compact(c.targetsB)
	types.regions()
	for _, s := range a.constants {
		c.misfits(c.align(s, c.refers))
	}
	c.compareNumbers(a.noptrdata, b.noptrdata)
	c.compareNumbers(a.data, b.data)
	for _, s := range a.constants {
		c.compareConstants(s)
	}
	c.compareOtherSections()
	c.report()
	return nil
}

// misfits records what does not fit.
func (c *comparison) misfits(bad []string) {
	for _, why := range bad {
		c.file.add(Different, "data", "%s", why)
	}
}

// findHoles finds the strings of build information, which are compared separately.
func (c *comparison) findHoles() {
	find := func(x *exe) hole {
		text := x.modInfo()
		if text == "" {
			return hole{}
		}
		at := bytes.Index(x.rodata.data, []byte(text))
		if at < 0 {
			return hole{}
		}
		from := x.rodata.addr + uint64(at)
		return hole{from, from + uint64(len(text))}
	}
	c.holeA, c.holeB = find(c.a), find(c.b)
}

// matchFunctions matches functions by name, and those of one name by their instructions and their order.
func (c *comparison) matchFunctions() {
	c.match = slices.Repeat([]int32{-1}, len(c.a.funcs))
	byName := make(map[string][]int32, len(c.b.funcs))
	for j := range c.b.funcs {
		byName[c.b.funcs[j].name] = append(byName[c.b.funcs[j].name], int32(j))
	}
	count := make(map[string]int)
	for i := range c.a.funcs {
		count[c.a.funcs[i].name]++
	}
	for i := range c.a.funcs {
		if name := c.a.funcs[i].name; count[name] == 1 && len(byName[name]) == 1 {
			c.match[i] = byName[name][0]
			byName[name] = nil
		}
	}
	for pass := range 2 { // functions that are the same, then all others
		for i := range c.a.funcs {
			f := &c.a.funcs[i]
			if c.match[i] >= 0 {
				continue
			}
			rest := byName[f.name]
			k := slices.IndexFunc(rest, func(j int32) bool { return pass == 1 || c.alike(int32(i), j) })
			if k >= 0 {
				c.match[i] = rest[k]
				byName[f.name] = slices.Delete(slices.Clone(rest), k, k+1)
			}
		}
	}
	var onlyA, onlyB []string
	for i, j := range c.match {
		if j < 0 {
			onlyA = append(onlyA, c.a.funcs[i].name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for range byName[name] {
			onlyB = append(onlyB, name)
		}
	}
	slices.Sort(onlyA)
	c.file.addAll(Different, "functions", "%d only in A", onlyA)
	c.file.addAll(Different, "functions", "%d only in B", onlyB)
}

// alike reports whether two functions of the same name have the same instructions and call the same functions, considering
// only those that are matched already.
func (c *comparison) alike(i, j int32) bool {
	m := &metaComparer{comparison: &comparison{layout: c.layout}, paths: map[[2]string]int{}}
	t := &textComparer{fn: i}
	if c.compareText(t, m, i, j) != nil || m.compare(int(i), int(j)) != "" {
		return false
	}
	for _, r := range slices.Concat(t.refs, m.refers) {
		if k := c.a.funcAt(uint64(r.a)); k >= 0 && c.match[k] >= 0 && !c.corresponds(uint64(r.a), uint64(r.b)) {
			return false
		}
	}
	return true
}

// compareText compares the instructions of two functions, and the padding behind them.
func (c *comparison) compareText(t *textComparer, m *metaComparer, i, j int32) *textDiff {
	f, g := &c.a.funcs[i], &c.b.funcs[j]
	na, okA := c.a.codeSize(f, m.bufA)
	nb, okB := c.b.codeSize(g, m.bufB)
	if !okA || !okB {
		return &textDiff{0, "tables that are broken"}
	}
	ca, cb := c.a.code(f), c.b.code(g)
	if !isPadding(ca[na:]) || !isPadding(cb[nb:]) {
		return &textDiff{min(na, nb), "code behind its end"}
	}
	if c.a.machine == elf.EM_X86_64 {
		return t.compareX86(ca[:na], cb[:nb], f.entry, g.entry)
	}
	return t.compareARM64(ca[:na], cb[:nb], f.entry, g.entry)
}

// refer records a pair of addresses in the tables of functions.
func (c *comparison) refer(a, b uint64) {
	c.refers = append(c.refers, ref{uint32(a), uint32(b), noFunction, 0})
}

// compareFunctions compares all matched functions, on all CPUs.
func (c *comparison) compareFunctions() {
	var group sync.WaitGroup
	var mu sync.Mutex
	n := len(c.a.funcs)
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			t := &textComparer{}
			m := &metaComparer{comparison: &comparison{layout: c.layout}, paths: map[[2]string]int{}}
			text, meta := map[int32]*textDiff{}, map[int32]string{}
			for i := n * w / workers; i < n*(w+1)/workers; i++ {
				j := c.match[i]
				if j < 0 {
					continue
				}
				t.fn = int32(i)
				if d := c.compareText(t, m, int32(i), j); d != nil {
					text[int32(i)] = d
				}
				if what := m.compare(i, int(j)); what != "" {
					meta[int32(i)] = what
				}
			}
			slices.SortFunc(t.refs, func(x, y ref) int {
				return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b), cmp.Compare(x.fn, y.fn))
			})
			mu.Lock()
			defer mu.Unlock()
			c.refers = slices.Concat(c.refers, slices.Compact(t.refs), m.refers)
			maps.Copy(c.text, text)
			maps.Copy(c.meta, meta)
			for k, v := range m.paths {
				c.paths[k] += v
			}
		})
	}
	group.Wait()
	tail := func(x *exe) []byte { return x.text.at(x.mod[modMaxPC])[:x.text.end()-x.mod[modMaxPC]] }
	if !isPadding(tail(c.a)) || !isPadding(tail(c.b)) {
		c.file.add(Different, "text", "there is code outside of Go functions, which can't be compared")
	}
}

// compareModules compares the words of moduledata that are neither addresses of sections nor lengths of other tables.
func (c *comparison) compareModules() {
	a, b := c.a.mod, c.b.mod
	for _, w := range []int{modGCData, modGCBSS, modTextSects, modInittasks} {
		c.refer(a[w], b[w])
	}
	c.refer(c.a.entry, c.b.entry)
	for w := modNoptrdata; w <= modEnd; w++ {
		of := func(x *exe) *section {
			return []*section{x.noptrdata, x.data, x.bss, x.noptrbss, x.noptrbss, x.noptrbss}[(w-modNoptrdata)/2]
		}
		if a[w]-of(c.a).addr != b[w]-of(c.b).addr {
			c.problem(c.a.module.addr+uint64(w)*8, c.b.module.addr+uint64(w)*8, "")
		}
	}
	for _, w := range []int{modInittasks + 1, modHasMain} {
		if a[w] != b[w] {
			c.problem(c.a.module.addr+uint64(w)*8, c.b.module.addr+uint64(w)*8, "")
		}
	}
	if s := c.a.rodata; s.has(a[modTextSects]) {
		c.explain(a[modTextSects], 24) // openExe has checked it
	}
	for i, s := range c.a.sections {
		if i < len(c.b.sections) && s.name == ".go.buildinfo" && c.b.sections[i].name == s.name {
			c.refer(s.addr, c.b.sections[i].addr)
		}
	}
}

// compareOtherSections compares all other sections byte by byte.
func (c *comparison) compareOtherSections() {
	for _, s := range c.a.sections {
		switch s {
		case c.a.data, c.a.noptrdata, c.a.bss, c.a.noptrbss, c.a.typelink, c.a.itablink:
			continue
		}
		if slices.Contains(c.a.constants, s) {
			continue
		}
		t := c.other[s]
		if !ownComparison[s.name] && (s.addr != t.addr || !bytes.Equal(s.data, t.data)) {
			c.file.add(Different, "data", "section %s, which can't be compared", s.name)
		}
	}
}

// compareUnloaded compares symbols, and the other sections that are not loaded into memory.
func (c *comparison) compareUnloaded() {
	type entry struct {
		name string
		size uint64
		info byte
	}
	list := func(x *exe) []entry {
		var l []entry
		for _, s := range x.symbols {
			e := entry{s.Name, s.Size, s.Info}
			if strings.HasPrefix(s.Name, "runtime.") && s.Section < elf.SHN_LORESERVE || strings.HasSuffix(s.Name, ".*") {
				e.size = 0 // may be a table of the linker
			}
			l = append(l, e)
		}
		slices.SortFunc(l, func(x, y entry) int {
			return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.size, y.size), cmp.Compare(x.info, y.info))
		})
		return l
	}
	a, b := list(c.a), list(c.b)
	var differ []string
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			differ, a = append(differ, a[0].name+" only in A"), a[1:]
		case len(a) == 0 || a[0].name > b[0].name:
			differ, b = append(differ, b[0].name+" only in B"), b[1:]
		default:
			if a[0] != b[0] && a[0].name != "go:buildinfo" && a[0].name != "go:buildid" {
				differ = append(differ, fmt.Sprintf("%s has %d bytes, and %d", a[0].name, a[0].size, b[0].size))
			}
			a, b = a[1:], b[1:]
		}
	}
	c.file.addAll(Different, "symbols", "%d differ", differ)
	names := func(x *exe) (l []string) {
		for _, s := range x.unloaded {
			l = append(l, s.Name)
		}
		slices.Sort(l)
		return l
	}
	if na, nb := names(c.a), names(c.b); !slices.Equal(na, nb) {
		c.file.add(Different, "sections", "that are not loaded: A has %s; B has %s", strings.Join(na, " "), strings.Join(nb, " "))
		return
	}
	var debug []string
	for _, s := range c.a.unloaded {
		if !strings.HasPrefix(s.Name, ".debug_") && s.Name != ".symtab" && s.Name != ".strtab" && s.Name != ".shstrtab" {
			c.file.add(Different, "sections", "%s, which can't be compared", s.Name)
			continue
		}
		for _, t := range c.b.unloaded {
			if s.Name != t.Name || !strings.HasPrefix(s.Name, ".debug_") {
				continue
			}
			da, errA := s.Data()
			db, errB := t.Data()
			if errA != nil || errB != nil || !bytes.Equal(da, db) {
				debug = append(debug, s.Name)
			}
		}
	}
	if len(debug) > 0 {
		c.file.add(Equivalent, "debug information", "%s: not loaded, and not compared further", strings.Join(debug, " "))
	}
}
