package govulns

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	cvss20 "github.com/pandatix/go-cvss/20"
	cvss30 "github.com/pandatix/go-cvss/30"
	cvss31 "github.com/pandatix/go-cvss/31"
	cvss40 "github.com/pandatix/go-cvss/40"
)

// maxEntry is the size, in bytes, of the largest entry of a database that is read.
const maxEntry = 16 << 20

// patience is how long a database may take to give an entry.
const patience = time.Minute

// Severity returns how bad a vulnerability is, as its entry in a database says: low, medium, high or critical, or "" if it does not say.
// Go's own database never does; those that distributions keep may. Of several scores the worst counts.
func Severity(ctx context.Context, db, id string) (string, error) {
	data, err := entry(ctx, db, id)
	if err != nil {
		return "", err
	}
	var e struct {
		Severity []struct{ Type, Score string }
		Database struct{ Severity string } `json:"database_specific"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return "", fmt.Errorf("%s: %s: %w", db, id, err)
	}
	worst := -1.0
	for _, s := range e.Severity {
		score, err := scoreOf(s.Type, s.Score)
		if err != nil {
			return "", fmt.Errorf("%s: %s: severity %s: %w", db, id, s.Score, err)
		}
		worst = max(worst, score)
	}
	if worst < 0 {
		return word(e.Database.Severity), nil
	}
	switch { // as CVSS rates scores
	case worst >= 9:
		return "critical", nil
	case worst >= 7:
		return "high", nil
	case worst >= 4:
		return "medium", nil
	}
	return "low", nil
}

// word returns a severity by the word that GitHub's database has for it.
func word(text string) string {
	switch text = strings.ToLower(text); text {
	case "low", "high", "critical":
		return text
	case "medium", "moderate":
		return "medium"
	}
	return ""
}

// scoreOf returns the score of a vector, or -1 for one that is none of CVSS.
func scoreOf(kind, vector string) (float64, error) {
	switch {
	case kind == "CVSS_V2":
		v, err := cvss20.ParseVector(vector)
		if err != nil {
			return 0, err
		}
		return v.BaseScore(), nil
	case strings.HasPrefix(vector, "CVSS:3.0/"):
		v, err := cvss30.ParseVector(vector)
		if err != nil {
			return 0, err
		}
		return v.BaseScore(), nil
	case strings.HasPrefix(vector, "CVSS:3.1/"):
		v, err := cvss31.ParseVector(vector)
		if err != nil {
			return 0, err
		}
		return v.BaseScore(), nil
	case strings.HasPrefix(vector, "CVSS:4.0/"):
		v, err := cvss40.ParseVector(vector)
		if err != nil {
			return 0, err
		}
		return v.Score(), nil
	}
	return -1, nil
}

// entry reads an entry of a database.
func entry(ctx context.Context, db, id string) ([]byte, error) {
	u, err := url.Parse(db)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return os.ReadFile(filepath.Join(filepath.FromSlash(u.Path), "ID", id+".json"))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := u.JoinPath(path.Join("ID", id+".json")).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", at, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, maxEntry))
}
