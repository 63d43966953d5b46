package patching

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// A mail is a commit in the form of git format-patch. A patch consists of one mail or several, or is a bare diff.
type mail struct {
	patch *patch.Patch // of this commit alone
	bare  bool         // a diff that says nothing about itself
}

var (
	// mailStart begins each mail in the output of git format-patch.
	mailStart = regexp.MustCompile(`(?m)^From [0-9a-f]{40,64} .*\n`)
	// mailHeader begins a mail that lost its first line.
	mailHeader = regexp.MustCompile(`\A(From|Subject|Date): `)
	// number is what git puts before the title of a patch in a file's name.
	number = regexp.MustCompile(`\A[0-9]+[-_]`)
	// indexLine names the content of a file before and after a change.
	indexLine = regexp.MustCompile(`(?m)^index ([0-9a-f]+)\.\.([0-9a-f]+)( [0-7]+)?\n`)
	// position says where in a file a hunk is: after which line, and in which function.
	position = regexp.MustCompile(`(?m)^@@ -[0-9,]+ \+[0-9,]+ @@.*$`)
)

// mails cuts a patch into its mails. Mails that change no file, such as a cover letter, are left out.
func mails(p *patch.Patch) ([]mail, error) {
	starts := mailStart.FindAllIndex(p.Text, -1)
	if len(starts) == 0 {
		return []mail{{p, !mailHeader.Match(p.Text)}}, nil
	}
	var all []mail
	for i, at := range starts {
		end := len(p.Text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		one, err := patch.Parse(p.Name, p.Text[at[0]:end])
		if bad := new(patch.InvalidError); errors.As(err, &bad) && len(starts) > 1 && bad.Path == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		one.Project = p.Project
		all = append(all, mail{one, false})
	}
	return all, nil
}

// A message is what a mail says about its change.
type message struct {
	name, email, date string // of the author
	text              string
}

// read returns the message of a mail as git am reads it.
func (m mail) read(ctx context.Context, repo *git.Repo) (message, error) {
	if m.bare {
		title := strings.TrimSuffix(path.Base(m.patch.Name), patch.Suffix)
		return message{"slipway", git.Email, "@0 +0000", number.ReplaceAllString(title, "") + "\n"}, nil
	}
	tmp, err := os.MkdirTemp("", "slipway-mail-")
	if err != nil {
		return message{}, err
	}
	defer os.RemoveAll(tmp)
	body := filepath.Join(tmp, "body")
	out, err := repo.Feed(ctx, bytes.NewReader(m.patch.Text), "mailinfo", "-u", "--no-scissors", body, filepath.Join(tmp, "diff"))
	if err != nil {
		return message{}, fmt.Errorf("patch %s: %w", m.patch.Name, err)
	}
	text, err := os.ReadFile(body)
	if err != nil {
		return message{}, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ": "); ok {
			fields[key] = value
		}
	}
	msg := message{fields["Author"], fields["Email"], fields["Date"], fields["Subject"] + "\n"}
	if len(bytes.TrimSpace(text)) > 0 {
		msg.text += "\n" + string(text)
	}
	if msg.name == "" || msg.email == "" {
		return message{}, fmt.Errorf("patch %s: its From line names no author: want From: Name <address>", m.patch.Name)
	}
	if msg.date == "" {
		msg.date = "@0 +0000"
	}
	return msg, nil
}

// commit commits what is in the index with a mail's message, and returns the commit's ID.
func (m mail) commit(ctx context.Context, repo *git.Repo) (id, title string, err error) {
	msg, err := m.read(ctx, repo)
	if err != nil {
		return "", "", err
	}
	as := repo.With("GIT_AUTHOR_NAME="+msg.name, "GIT_AUTHOR_EMAIL="+msg.email, "GIT_AUTHOR_DATE="+msg.date)
	if _, err := as.Feed(ctx, strings.NewReader(msg.text), "commit", "--quiet", "--allow-empty", "--allow-empty-message", "--no-verify",
		"--cleanup=whitespace", "--file=-"); err != nil {
		return "", "", fmt.Errorf("patch %s: %w", m.patch.Name, err)
	}
	id, err = repo.Line(ctx, "rev-parse", "HEAD")
	return id, strings.TrimSpace(strings.SplitN(msg.text, "\n", 2)[0]), err
}

// text returns a mail for git am.
func (m mail) text() []byte {
	if !m.bare {
		return m.patch.Text
	}
	title := number.ReplaceAllString(strings.TrimSuffix(path.Base(m.patch.Name), patch.Suffix), "")
	header := "From: slipway <" + git.Email + ">\nDate: Thu, 1 Jan 1970 00:00:00 +0000\nSubject: " + title + "\n\n---\n"
	return append([]byte(header), m.patch.Text...)
}

// format returns a commit as a mail. It depends on the commit alone, not on the machine, the user or the other objects.
func format(ctx context.Context, repo *git.Repo, commit string) ([]byte, error) {
	return repo.Run(ctx, "format-patch", "--stdout", "-1", "--always", "--no-numbered", "--zero-commit", "--no-signature", "--full-index",
		"--binary", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--stat=72",
		"--encode-email-headers", "--no-attach", "--no-thread", "--no-notes", "--subject-prefix=PATCH", commit)
}

// alike reports whether two formatted commits are the same change with the same message. Hunks may have moved if moved is set. What
// git calls the contents before and after depends on other commits, and does not count.
func alike(a, b []byte, moved bool) bool {
	return bytes.Equal(essence(a, moved), essence(b, moved))
}

func essence(text []byte, moved bool) []byte {
	text = indexLine.ReplaceAll(text, nil)
	if moved {
		text = position.ReplaceAll(text, []byte("@@"))
	}
	return text
}
