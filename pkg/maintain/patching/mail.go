package patching

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// A mail is a commit of a patch as git am takes it.
type mail struct {
	patch *patch.Patch // with this commit alone
	text  []byte
}

// mails returns the mails of a patch. If upstream has the patch, it is a single one without changes.
func mails(p *patch.Patch, v patch.Verdict) []mail {
	var all []mail
	for _, c := range p.Commits {
		one := *p
		one.Commits = []patch.Commit{c}
		m := mail{patch: &one}
		if v == patch.Upstream {
			m.text = m.unchanged()
			return []mail{m}
		}
		m.text = m.with(c.Text)
		all = append(all, m)
	}
	return all
}

const (
	// patchHeader is the field of a mail's header that names the patch.
	patchHeader = "X-Slipway-Patch: "
	// excluded names a file that is in no repository: git am runs with --exclude for it.
	excluded = ".slipway-no-change"
)

var (
	// firstLine begins each mail in the output of git format-patch.
	firstLine = regexp.MustCompile(`\A\s*From [0-9a-f]{40,64} .*\n`)
	// number is what git puts before the title of a patch in a file's name.
	number = regexp.MustCompile(`\A[0-9]+[-_]`)
)

// with returns the mail with another text. A diff gets a header, and its file's name as the title.
func (m mail) with(text []byte) []byte {
	header := patchHeader + m.patch.Name + "\nDate: Thu, 1 Jan 1970 00:00:00 +0000\n" // a date of the mail's own replaces it
	if !patch.IsMail(m.patch.Commits[0].Text) {
		title := number.ReplaceAllString(strings.TrimSuffix(path.Base(m.patch.Name), patch.Suffix), "")
		header += "From: slipway <" + git.Email + ">\nSubject: " + title + "\n\n---\n"
	}
	return append([]byte(header), firstLine.ReplaceAll(text, nil)...)
}

// unchanged returns the mail without its changes. Its only change is of a file that git am excludes, so git am makes an empty commit.
// Without any change, it would stop.
func (m mail) unchanged() []byte {
	diff := fmt.Sprintf("\n---\ndiff --git a/%[1]s b/%[1]s\nnew file mode 100644\n", excluded)
	return m.with([]byte(m.patch.Commits[0].Message + diff))
}

// exclude returns git's options for changes that are passed over.
func exclude(list []patch.Skipped) []string {
	options := []string{"--exclude=" + excluded}
	for _, s := range list {
		options = append(options, "--exclude="+regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(s.File, `\$0`))
	}
	return options
}

// am runs git am with more options.
func am(ctx context.Context, repo *git.Repo, mails []mail, options ...string) error {
	if len(mails) == 0 {
		return nil
	}
	tmp, err := os.MkdirTemp("", "slipway-mails-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	args := []string{"am", "--quiet", "--3way", "--keep-cr", "--no-scissors", "--patch-format=mbox", "--committer-date-is-author-date"}
	args = append(args, options...)
	for i, m := range mails {
		file := filepath.Join(tmp, fmt.Sprint(i))
		if err := os.WriteFile(file, m.text, 0o666); err != nil {
			return err
		}
		args = append(args, file)
	}
	_, err = repo.Run(ctx, args...)
	return err
}

// waiting returns the name of the patch at which git am has stopped. It is empty if git am is not in progress, or was not run here.
func waiting(ctx context.Context, repo *git.Repo) string {
	mail, err := repo.Line(ctx, "am", "--show-current-patch=raw")
	name, ok := strings.CutPrefix(mail, patchHeader)
	if err != nil || !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, "\n")
	return name
}

// title returns the title in a message.
func title(message string) string { return strings.Split(message, "\n")[3] }

// messages returns the messages that git am reads in mails: author, address and date in a line each, and then the text.
func messages(ctx context.Context, mails []mail) ([]string, error) {
	tmp, err := os.MkdirTemp("", "slipway-messages-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	repo, err := git.At(tmp)
	if err != nil {
		return nil, err
	}
	if err := repo.Init(ctx); err != nil {
		return nil, err
	}
	if _, err := repo.Commit(ctx, "Base\n"); err != nil {
		return nil, err
	}
	if err := am(ctx, repo, mails, "--exclude=*"); err != nil {
		return nil, fmt.Errorf("patch %s: %w", waiting(ctx, repo), err)
	}
	out, err := repo.Line(ctx, "log", "-z", "--reverse", "--format=%an%n%ae%n%ad%n%B")
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")[1:], err
}
