package app

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// addresses is a range of addresses, as a flag's value.
type addresses struct{ first, last netip.Addr }

func (a *addresses) String() string {
	if !a.first.IsValid() {
		return ""
	}
	return a.first.String() + "-" + a.last.String()
}

func (a *addresses) Type() string { return "range" }

func (a *addresses) Set(text string) error {
	from, to, _ := strings.Cut(text, "-")
	first, err := netip.ParseAddr(from)
	if err != nil {
		return fmt.Errorf("want FIRST-LAST: %w", err)
	}
	last, err := netip.ParseAddr(to)
	if err != nil {
		return fmt.Errorf("want FIRST-LAST: %w", err)
	}
	if first.Is4() != last.Is4() || last.Less(first) {
		return errors.New("the last address comes before the first")
	}
	*a = addresses{first, last}
	return nil
}

func (a addresses) contains(ip netip.Addr) bool {
	return ip.IsValid() && !ip.Less(a.first) && !a.last.Less(ip)
}

// free returns the first address of the range that is not taken.
func (a addresses) free(taken func(netip.Addr) bool) (netip.Addr, error) {
	for ip := a.first; a.contains(ip); ip = ip.Next() {
		if !taken(ip) {
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("Services have all addresses of %v", &a)
}
