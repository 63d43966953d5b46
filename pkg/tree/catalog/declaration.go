package catalog

// A declaration is release.yaml as it was written: well-formed, but not yet known to make sense. What was left out
// or was reported as malformed is empty.
type declaration struct {
	module    text
	goVersion text
	sums      []entry
	tags      []text
	sets      []declaredSet
	binaries  []declaredBinary
	images    []declaredImage
	registry  text
}

type declaredSet struct {
	name      text
	platforms []text
}

type declaredBinary struct {
	line       int
	name       text
	module     text
	pkg, test  text
	stamp      text
	sets, only []text
	folder     text
}

type declaredImage struct {
	line               int
	name, title        text
	base, binary, user text
	with               []text
	version            text
	set                text
	entrypoint         []text
	arguments          []text
	setuid             bool
}

// A text is a piece of text and the line it is on.
type text struct {
	value string
	line  int // 0 if it was left out
}

// An entry is a text with a name that the file's author chose.
type entry struct{ key, value text }

func values(texts []text) []string {
	var s []string
	for _, t := range texts {
		s = append(s, t.value)
	}
	return s
}
