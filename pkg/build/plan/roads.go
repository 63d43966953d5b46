package plan

import (
	"slipway.build/pkg/build/road"
	bazelroad "slipway.build/pkg/build/road/bazel"
	"slipway.build/pkg/build/road/container"
	"slipway.build/pkg/build/road/local"
	"slipway.build/pkg/mechanism/suggest"
)

// roads lists the roads by their names. The first is the default.
var roads = []struct {
	info road.Info
	of   func(p *Project) road.Road
}{
	{local.Info, func(p *Project) road.Road { return p.local }},
	{container.Info, func(p *Project) road.Road { return p.Containers(p.Catalog.Module) }},
	{bazelroad.Info, func(p *Project) road.Road {
		return &bazelroad.Road{Root: p.Root, Version: p.pin().Version, Bazel: p.findBazel, Check: p.checkBazel}
	}},
}

// Roads returns the names of the roads.
func Roads() []string {
	var names []string
	for _, r := range roads {
		names = append(names, r.info.Name)
	}
	return names
}

// Binaries returns the folder of a road's binaries, OS/ARCH/NAME, or "" if there is no such road.
func Binaries(name string) string {
	for i, r := range roads {
		if r.info.Name == name || name == "" && i == 0 {
			return r.info.Output
		}
	}
	return ""
}

// chooseRoad selects the road that the settings name.
func (p *Project) chooseRoad() error {
	for i, r := range roads {
		if name := p.Settings.Road; r.info.Name == name || name == "" && i == 0 {
			p.road = r.of(p)
			return road.CheckOptions(p.road, p.Settings.Build)
		}
	}
	return suggest.Unknown("road", p.Settings.Road, Roads())
}
