package action

// An Origin says where the bytes of a result come from.
type Origin string

const (
	Built   Origin = ""        // made here, of inputs alone
	Reused  Origin = "reused"  // made here, with parts of what was built here before
	Derived Origin = "derived" // made here, with parts that a cache had, or by a program that a cache had
	Cached  Origin = "cached"  // a cache had the result
)

// Own reports whether no cache had a part in the bytes. The owner of a tree may sign them as a release, and they count where cached results
// do not.
func (o Origin) Own() bool { return o == Built || o == Reused }

// MadeHere reports whether this machine made the bytes. It uploads such results, with its signature, also if they are derived.
func (o Origin) MadeHere() bool { return o != Cached }

// With returns the origin of what is made here of bytes with two origins.
func (o Origin) With(part Origin) Origin {
	switch {
	case !o.Own() || !part.Own():
		return Derived
	case o == Reused || part == Reused:
		return Reused
	}
	return Built
}
