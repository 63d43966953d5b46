package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func report() Report {
	return Report{
		Machine: Machine{Platform: "linux/amd64", Cores: 2, Memory: 4 << 30, Go: "go1.26.8", Load: 0.25},
		Rows: []*Row{
			{Name: "noop", Unit: "s", What: "nothing to do", Wanted: Bound{Seconds, 0.15}, Ours: samples(0.0921)},
			{Name: "commit", Unit: "s", What: "new commit", With: "go build", Wanted: Bound{AtMost, 1.4},
				Ours: []Sample{{Value: 30, Memory: 3 << 30}}, Theirs: []Sample{{Value: 20, Memory: 5 << 29, Others: 0.31}}},
			{Name: "pack", Unit: "s", What: "empty cache", With: "tar czf", Wanted: Bound{Faster, 6}, Ours: samples(5), Theirs: samples(31)},
			{Name: "size", Unit: "B", What: "its size", With: "tar czf", Wanted: Bound{AtMost, 1.06}, Ours: samples(105 << 20),
				Theirs: samples(100 << 20)},
		},
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report().Table(&out); err != nil {
		t.Fatal(err)
	}
	const want = `linux/amd64, 2 cores, 4.0 GiB, go1.26.8, load 0.2 before

row     slipway                   compared with             figure   wanted        
noop    nothing to do  92 ms      -              -          0.092 s  <= 0.150 s    ok
commit  new commit     30.0 s     go build       20.0 s     1.50x    <= 1.40x      MISSED
pack    empty cache    5.0 s      tar czf        31.0 s     6.2x     >= 6x faster  ok
size    its size       105.0 MiB  tar czf        100.0 MiB  1.05x    <= 1.06x      ok

commit: peak memory 3.0 GiB, of go build 2.5 GiB
commit: others took up to 31% of the processors: measure again
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestJSONHasWhatFollowsFromTheSamples(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report().JSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine Machine
		Rows    []struct {
			Name          string
			Slipway       []Sample
			SlipwayMedian float64
			OtherMedian   float64
			Figure        float64
			OK            bool
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report().Machine, got.Machine); diff != "" {
		t.Error(diff)
	}
	row := got.Rows[1]
	if row.Name != "commit" || row.SlipwayMedian != 30 || row.OtherMedian != 20 || row.Figure != 1.5 || row.OK ||
		len(row.Slipway) != 1 || row.Slipway[0].Memory != 3<<30 {
		t.Errorf("%+v", row)
	}
}
