package patch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/git"
)

var (
	// headerLine is a line of a mail's header, for git am.
	headerLine = regexp.MustCompile(`^[!-9;-~]+:`)
	// contentLine is a line of a mail's header that says how the rest is encoded. It may go on in the next line.
	contentLine = regexp.MustCompile(`(?im)^Content-(?:Type|Transfer-Encoding):.*(?:\n[ \t].*)*`)
	// authorLines and subjectLine are lines of git mailinfo.
	authorLines = regexp.MustCompile(`(?m)^Author: (.*)\nEmail: (.*)$`)
	subjectLine = regexp.MustCompile(`(?m)^Subject: `)
	// plainLine is one that git format-patch writes: the rest is as it seems.
	plainLine = regexp.MustCompile(
		`(?i)^Content-(?:Type:\s*text/plain(?:;\s*charset="?(?:utf-8|us-ascii)"?)?|Transfer-Encoding:\s*(?:7bit|8bit|binary))\s*$`)
)

// IsMail reports whether git am takes data for mails. Anything else is a diff, as git apply reads it.
func IsMail(data []byte) bool {
	data = bytes.TrimLeft(data, "\r\n")
	if bytes.HasPrefix(data, []byte("From ")) || bytes.HasPrefix(data, []byte("From: ")) {
		return true
	}
	for text := range bytes.Lines(data) {
		switch text = bytes.TrimRight(text, "\r\n"); {
		case len(text) == 0:
			return true
		case text[0] != ' ' && text[0] != '\t' && !headerLine.Match(text):
			return false
		}
	}
	return len(data) > 0
}

// decode returns mails as git am reads them: without encodings for the transport, attachments, and line ends of mail programs. Git
// itself decodes them. Data that is not encoded is returned unchanged.
func decode(data []byte) ([]byte, error) {
	if !IsMail(data) {
		return data, nil
	}
	dos := dosHeader.Match(data)
	encoded := func(line []byte) bool { return !plainLine.Match(line) }
	if !dos && !slices.ContainsFunc(contentLine.FindAll(data, -1), encoded) {
		return data, nil
	}
	tmp, err := os.MkdirTemp("", "slipway-mail-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	repo, err := git.At(tmp)
	if err != nil {
		return nil, err
	}
	args := []string{"mailsplit", "-b", "-o" + tmp}
	if !dos { // line ends of the code, and not of the mail
		args = append(args, "--keep-cr")
	}
	if _, err := repo.Feed(context.Background(), bytes.NewReader(data), args...); err != nil {
		return nil, err
	}
	mails, err := filepath.Glob(filepath.Join(tmp, "[0-9]*"))
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, mail := range mails {
		text, err := plain(repo, mail)
		if err != nil {
			return nil, err
		}
		all.Write(text)
	}
	return all.Bytes(), nil
}

// plain returns a mail that git has decoded, in the form of git format-patch.
func plain(repo *git.Repo, file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	message, diff := file+".message", file+".diff"
	info, err := repo.Feed(context.Background(), bytes.NewReader(data), "mailinfo", "-u", "--no-scissors", message, diff)
	if err != nil {
		return nil, err
	}
	first := commitLine.Find(data)
	if !bytes.HasPrefix(data, first) || first == nil {
		first = []byte("From " + strings.Repeat("0", 40) + " Mon Sep 17 00:00:00 2001\n")
	}
	header := authorLines.ReplaceAll(bytes.TrimRight(info, "\n"), []byte("From: $1 <$2>"))
	header = subjectLine.ReplaceAll(header, []byte("$0[PATCH] "))
	text := fmt.Appendf(first, "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n%s\n\n", header)
	for _, part := range []struct{ file, end string }{{message, "---\n\n"}, {diff, ""}} {
		data, err := os.ReadFile(part.file)
		if err != nil {
			return nil, err
		}
		if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
			data = append(data, '\n')
		}
		text = append(append(text, data...), part.end...)
	}
	return text, nil
}
