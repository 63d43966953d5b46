package action

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Taken returns the IDs of actions whose results are not [Origin.Own], among those that made outputs and the inputs of these, by the
// records of the last runs. It fails if one of these records is of another version of slipway, and so does not say where its bytes come
// from, or if a run was killed while it wrote one. Only Root and State of the graph must be set.
func (g *Graph) Taken(outputs []string) ([]string, error) {
	records, err := g.ledger().all()
	if err != nil {
		return nil, err
	}
	makers := map[string]record{} // by output
	for _, r := range records {
		for _, o := range r.Outputs {
			makers[o.Path] = r // several actions may have made it, one after the other
		}
	}
	var taken []string
	seen := map[string]bool{}
	var visit func(p string) error
	visit = func(p string) error {
		r, ok := makers[p]
		for above := range parents(p) {
			if ok {
				break
			}
			r, ok = makers[above+"/"]
		}
		if !ok || seen[r.ID] {
			return nil
		}
		seen[r.ID] = true
		if r.Format != recordFormat {
			return fmt.Errorf("the record of %s is of another version of slipway: make it again", r.ID)
		}
		if !r.Origin.Own() {
			taken = append(taken, r.ID)
		}
		if r.Origin == Cached { // its inputs were not looked at
			return nil
		}
		var from keyParts
		if err := g.ledger().read(r.ID, ".from", &from); err != nil {
			return fmt.Errorf("inputs of %s: %w", r.ID, err)
		}
		if from.Key != r.Key {
			return fmt.Errorf("the record of %s is not whole: remove %s and make it again", r.ID, g.ledger().name(r.ID, ".json"))
		}
		for _, line := range from.Inputs {
			_, in, _ := strings.Cut(line, " ")
			if err := visit(in); err != nil {
				return err
			}
		}
		return nil
	}
	for _, p := range outputs {
		if err := visit(p); err != nil {
			return nil, err
		}
	}
	slices.Sort(taken)
	return taken, nil
}

// all returns all records, also those of another version, in the order in which they were written.
func (l ledger) all() ([]record, error) {
	names, err := filepath.Glob(filepath.Join(l.folder, "*.json"))
	if err != nil {
		return nil, err
	}
	written := map[string]time.Time{}
	for _, name := range names {
		st, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		written[name] = st.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return written[a].Compare(written[b]) })
	var records []record
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("record %s: %w", name, err)
		}
		records = append(records, r)
	}
	return records, nil
}
