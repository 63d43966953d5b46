package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// saveEvery is how often a long run saves the contents it remembers, so that they survive if it is killed.
const saveEvery = 10 * time.Second

// A scheduler takes the units of a graph through their stages: waiting for others, ready to be judged, stale and ready to
// run, running, settling (the outputs are in place and are read), done. Only its goroutine changes the stages; other
// goroutines do what takes time, and report to it.
type scheduler struct {
	*run
	budget Budget

	ready    []*unit // by rank
	stale    []*job  // by rank
	judging  []*unit
	running  int
	lanes    map[string]bool // with a batch that runs
	settling int
	done     int
	cpu      int   // threads of all that runs
	memory   int64 // bytes of all that runs

	reports chan report
	errs    []error
	failed  bool            // an action did, not only a fetch of what is lost
	gone    map[string]bool // actions whose results are lost
	saved   time.Time
	looked  bool // machineReady has looked
}

// A job is a unit that must run.
type job struct {
	*unit
	task   *Task
	passed int // how many jobs of a later rank have started before it
}

// A stage of a unit has ended when it is reported.
type stage int

const (
	judged stage = iota
	ran          // gives the budget back
	settled
)

type report struct {
	stage stage
	unit  *unit
	task  *Task // of judged: nil if nothing is stale
	err   error
}

func newScheduler(r *run, units int) *scheduler {
	b := r.opts.Budget
	if b.CPU <= 0 {
		b.CPU = runtime.NumCPU()
	}
	return &scheduler{run: r, budget: b, reports: make(chan report, units), lanes: map[string]bool{},
		gone: map[string]bool{}, saved: time.Now()}
}

func (s *scheduler) work(ctx context.Context, units []*unit) error {
	for _, u := range units {
		if u.waits == 0 {
			s.ready = append(s.ready, u)
		}
	}
	for {
		if len(s.errs) == 0 && ctx.Err() == nil {
			s.judgeReady(ctx)
			if !s.opts.FetchOnly && s.machineReady(ctx) {
				s.runStale(ctx)
			}
		}
		if len(s.judging)+s.running+s.settling == 0 {
			break
		}
		s.take(ctx, <-s.reports)
	}
	if ctx.Err() != nil && s.done < len(units) && !errors.Is(errors.Join(s.errs...), ctx.Err()) {
		s.errs = append(s.errs, fmt.Errorf("interrupted: %w", ctx.Err()))
	}
	return errors.Join(s.errs...)
}

// lookups is how many units, and how many actions of a unit, are judged at the same time with a cache: most of that is waiting.
const lookups = 32

// judgers returns how many units, and how many actions of a unit, are judged at the same time.
func (s *scheduler) judgers() (units, members int) {
	if s.cache != nil {
		return lookups, lookups
	}
	return runtime.GOMAXPROCS(0), 1
}

// judgeReady judges units side by side.
func (s *scheduler) judgeReady(ctx context.Context) {
	for most, _ := s.judgers(); len(s.ready) > 0 && len(s.judging) < most; {
		u := s.ready[0]
		s.ready = s.ready[1:]
		s.judging = append(s.judging, u)
		go func() { s.reports <- s.examineUnit(ctx, u) }()
	}
}

// machineReady reports whether work may start. It waits until all batches with a Ready are judged that can be judged at first,
// then calls that of each batch with something to do.
func (s *scheduler) machineReady(ctx context.Context) bool {
	looks := func(u *unit) bool { return u.batch != nil && u.batch.Ready != nil }
	if s.looked {
		return true
	}
	if slices.ContainsFunc(s.ready, looks) || slices.ContainsFunc(s.judging, looks) {
		return false
	}
	s.looked = true
	for _, j := range s.stale {
		if !looks(j.unit) {
			continue
		}
		if err := guard(func() error { return j.batch.Ready(ctx) }); err != nil {
			s.fail(ctx, report{stage: ran, unit: j.unit, err: err})
			return false
		}
	}
	return true
}

func (s *scheduler) examineUnit(ctx context.Context, u *unit) report {
	t := &Task{run: s.run, unit: u, folder: u.folder(s.tmp), facts: facts{origin: Built.With(s.opts.Program),
		digests: make(map[string][32]byte), linked: make(map[string]hardlink)}}
	t.Report = t.emit
	t.all = make([]*verdict, len(u.members))
	var g errgroup.Group
	_, most := s.judgers()
	g.SetLimit(most)
	for i, m := range u.members {
		g.Go(func() (err error) {
			if t.all[i], err = s.examine(ctx, m); err != nil {
				return fmt.Errorf("%s%w", u.prefix(m), err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return report{stage: judged, unit: u, err: err}
	}
	for _, v := range t.all {
		if v.reason.Kind != "" {
			t.stale = append(t.stale, v)
			continue
		}
		if err := s.skip(ctx, v); err != nil {
			return report{stage: judged, unit: u, err: fmt.Errorf("%s%w", u.prefix(v.member), err)}
		}
	}
	if len(t.stale) == 0 {
		return report{stage: judged, unit: u}
	}
	t.Audit = slices.ContainsFunc(t.stale, func(v *verdict) bool { return slices.Contains(s.opts.Audit, v.ID) })
	if !s.opts.NoCachedResults && !t.Audit {
		t.cache = s.cache
	}
	return report{stage: judged, unit: u, task: t}
}

// skip reports an action that does not run.
func (s *scheduler) skip(ctx context.Context, v *verdict) error {
	e := Event{Kind: Skipped, Action: v.ID, Phase: v.Phase, Origin: v.record.Origin, Files: v.record.files()}
	if v.hit != nil {
		e.Kind = Hit
		err := errors.Join(s.ledger.write(v.ID, ".result", s.tmp, resultRecord{v.key, *v.hit}), s.save(v, v.record))
		if err != nil {
			return err
		}
	}
	s.emit(e)
	if !v.record.Origin.MadeHere() || s.cache == nil || !s.cache.Stores() {
		return nil
	}
	outputs, err := s.outputs(v.member)
	if err == nil {
		s.uploads.offer(ctx, v, v.record, outputs)
	}
	return err
}

// maxPassed is how many smaller jobs may start before one that does not fit, so that it starts eventually.
const maxPassed = 16

// runStale starts the jobs that fit into the budget. A job waits while a unit that ranks before it is being judged, so
// that the order does not depend on how long judging takes.
func (s *scheduler) runStale(ctx context.Context) {
	for i := 0; i < len(s.stale); {
		j := s.stale[i]
		if slices.ContainsFunc(s.judging, func(u *unit) bool { return u.rank < j.rank }) {
			return
		}
		if s.laneTaken(i) {
			i++
			continue
		}
		if !s.fits(j.unit.cost) {
			if j.passed >= maxPassed {
				return
			}
			i++
			continue
		}
		for _, waiting := range s.stale[:i] {
			waiting.passed++
		}
		s.stale = slices.Delete(s.stale, i, i+1)
		s.start(ctx, j)
	}
}

// laneTaken reports whether a stale job waits for another one in its lane, which runs or comes before it.
func (s *scheduler) laneTaken(i int) bool {
	lane := s.stale[i].lane()
	return lane != "" && (s.lanes[lane] || slices.ContainsFunc(s.stale[:i], func(j *job) bool { return j.lane() == lane }))
}

func (s *scheduler) fits(c Cost) bool {
	return s.running == 0 ||
		s.cpu+threads(c) <= s.budget.CPU && (s.budget.Memory == 0 || s.memory+c.Memory <= s.budget.Memory)
}

func threads(c Cost) int { return max(c.CPU, 1) }

func (s *scheduler) start(ctx context.Context, j *job) {
	s.running++
	s.cpu += threads(j.cost)
	s.memory += j.cost.Memory
	if lane := j.lane(); lane != "" {
		s.lanes[lane] = true
	}
	t := j.task
	t.start = time.Now()
	go func() {
		err := t.fetchInputs(ctx)
		if err == nil {
			t.start = time.Now()
			s.emit(j.started(t.stale))
			err = t.work(ctx)
		}
		s.reports <- report{stage: ran, unit: j.unit, task: t, err: err}
		if err == nil {
			s.reports <- report{stage: settled, unit: j.unit, task: t, err: t.settle(ctx)}
		}
	}()
}

// started returns the event of a unit that starts.
func (u *unit) started(stale []*verdict) Event {
	e := Event{Kind: Started, Action: u.id, Phase: u.phase}
	if u.batch != nil {
		e.Stale, e.Members = len(stale), len(u.members)
	}
	seen := make(map[string]bool)
	for _, v := range stale {
		if text := v.reason.String(); !seen[text] {
			seen[text] = true
			e.Reasons = append(e.Reasons, v.reason)
		}
	}
	e.Text = e.why()
	return e
}

// why returns in words why an action runs; for a batch, how many of its actions run and why.
func (e Event) why() string {
	const shown = 2
	var words []string
	for _, r := range e.Reasons[:min(shown, len(e.Reasons))] {
		words = append(words, r.String())
	}
	if more := len(e.Reasons) - shown; more > 0 {
		words = append(words, fmt.Sprintf("%d other reasons", more))
	}
	text := strings.Join(words, "; ")
	if e.Members > 0 {
		text = fmt.Sprintf("%d of %d: %s", e.Stale, e.Members, text)
	}
	return text
}

func (s *scheduler) take(ctx context.Context, r report) {
	switch r.stage {
	case judged:
		s.judging = slices.DeleteFunc(s.judging, func(u *unit) bool { return u == r.unit })
	case ran:
		s.running--
		s.cpu -= threads(r.unit.cost)
		s.memory -= r.unit.cost.Memory
		delete(s.lanes, r.unit.lane())
	case settled:
		s.settling--
	}
	switch {
	case r.err != nil:
		s.fail(ctx, r)
	case r.stage == judged && r.task != nil:
		j := &job{unit: r.unit, task: r.task}
		at, _ := slices.BinarySearchFunc(s.stale, j, func(a, b *job) int { return cmp.Compare(a.rank, b.rank) })
		s.stale = slices.Insert(s.stale, at, j)
	case r.stage == ran:
		s.settling++
	default:
		s.finish(r.unit)
	}
}

// finish makes the units ready that waited only for this one.
func (s *scheduler) finish(u *unit) {
	s.done++
	for _, d := range u.dependents {
		if d.waits--; d.waits == 0 {
			at, _ := slices.BinarySearchFunc(s.ready, d, func(a, b *unit) int { return cmp.Compare(a.rank, b.rank) })
			s.ready = slices.Insert(s.ready, at, d)
		}
	}
	if time.Since(s.saved) > saveEvery {
		s.saved = time.Now()
		if err := s.saveStats(); err != nil {
			s.errs = append(s.errs, advise(err))
		}
	}
}

func (r *run) saveStats() error {
	if err := os.MkdirAll(r.tmp, 0o777); err != nil {
		return err
	}
	return r.stats.Save(filepath.Join(r.state, "stat"), r.tmp)
}

func (s *scheduler) fail(ctx context.Context, r report) {
	if lost, ok := errors.AsType[*lostError](r.err); ok { // another pass makes what is lost
		maps.Copy(s.gone, lost.ids)
		s.errs = append(s.errs, r.err)
		return
	}
	s.failed = true
	err := advise(r.err)
	// The error of a tool that the interruption killed does not say so.
	if r.stage == ran && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	e := Event{Kind: Failed, Action: r.unit.id, Phase: r.unit.phase, Text: err.Error()}
	if r.task != nil {
		e.Duration = time.Since(r.task.start)
		e.By = r.task.snapshot().by
	}
	s.emit(e)
	s.errs = append(s.errs, fmt.Errorf("%s: %w", r.unit.id, err))
}
