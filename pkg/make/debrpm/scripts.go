package debrpm

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/rpm"
)

// texts are what runs at the moments that both formats have.
type texts struct{ preInstall, postInstall, preRemove, postRemove string }

// units is the folder of systemd's units.
const units = "usr/lib/systemd/system"

// reload has systemd read its units again, where it runs.
const reload = "if [ -d /run/systemd/system ]; then\n\tsystemctl daemon-reload || :\nfi\n"

// scripts returns the tree's own scripts, after what the units among the files need.
func (m maker) scripts(entries []archive.Entry) (texts, error) {
	var t texts
	var named []string
	has := false
	for _, e := range entries {
		if dir := path.Dir(e.Name); dir == units && slices.Contains([]string{".service", ".socket", ".timer", ".path"}, path.Ext(e.Name)) {
			named = append(named, path.Base(e.Name))
		}
		has = has || strings.HasPrefix(e.Name, units+"/")
	}
	slices.Sort(named)
	if has {
		t.postInstall, t.postRemove = reload, reload
	}
	if len(named) > 0 {
		all := strings.Join(named, " ")
		t.preRemove = "if [ -d /run/systemd/system ]; then\n\tsystemctl stop " + all + " || :\nfi\n" +
			"if command -v systemctl >/dev/null; then\n\tsystemctl --no-reload disable " + all + " || :\nfi\n"
	}
	for _, own := range []struct {
		file string
		to   *string
	}{
		{m.Scripts.PreInstall, &t.preInstall}, {m.Scripts.PostInstall, &t.postInstall},
		{m.Scripts.PreRemove, &t.preRemove}, {m.Scripts.PostRemove, &t.postRemove},
	} {
		if own.file == "" {
			continue
		}
		text, err := os.ReadFile(m.abs(own.file))
		if err != nil {
			return t, err
		}
		*own.to += strings.TrimRight(string(text), "\n") + "\n"
	}
	return t, nil
}

// when returns lines that run under a condition; none if there is nothing to run.
func when(condition, lines string) string {
	if lines == "" {
		return ""
	}
	return "set -e\nif " + condition + "; then\n" + lines + "fi\n"
}

// deb returns the scripts of a deb. dpkg calls each at several moments, and says which.
func (t texts) deb() map[string]string {
	scripts := map[string]string{
		"preinst":  when(`[ "$1" = install ] || [ "$1" = upgrade ]`, t.preInstall),
		"postinst": when(`[ "$1" = configure ]`, t.postInstall),
		"prerm":    when(`[ "$1" = remove ]`, t.preRemove),
		"postrm":   when(`[ "$1" = remove ]`, t.postRemove),
	}
	maps.DeleteFunc(scripts, func(_, script string) bool { return script == "" })
	for name, script := range scripts {
		scripts[name] = "#!/bin/sh\n" + script
	}
	return scripts
}

// rpm returns the scripts of an rpm. rpm says how many versions of the package stay.
func (t texts) rpm() rpm.Scripts {
	return rpm.Scripts{
		Pre:   when(`[ "$1" -ge 1 ]`, t.preInstall),
		Post:  when(`[ "$1" -ge 1 ]`, t.postInstall),
		Preun: when(`[ "$1" -eq 0 ]`, t.preRemove), Postun: when(`[ "$1" -eq 0 ]`, t.postRemove),
	}
}
