package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIncompatibleChangesOfMessagesAreFound(t *testing.T) {
	t.Parallel()
	old := `package k8s.io.api.x.v1;
message Gone {
  optional string name = 1;
}

// Kept has comments.
message Kept {
  // message Other {
  // +optional
  optional k8s.io.api.y.v1.Y removed = 1;
  repeated string renumbered = 2;
  map<string, string> retyped = 3;
  map<string, k8s.io.api.y.v1.Y> same = 4;
}
`
	now := `package k8s.io.api.x.v1;
message Kept {
  repeated string renumbered = 5;
  map<string, bytes> retyped = 3;
  map<string, k8s.io.api.y.v1.Y> same = 4;
  optional string added = 6;
}
`
	want := []string{
		"the message k8s.io.api.x.v1.Gone is removed",
		"the field k8s.io.api.x.v1.Kept.removed with number 1 is removed",
		"the field k8s.io.api.x.v1.Kept.renumbered has number 5 instead of 2",
		`the field k8s.io.api.x.v1.Kept.retyped is "map<string, bytes>" instead of "map<string, string>"`,
	}
	var got []string
	for _, c := range incompatible(parseProto([]byte(old)), parseProto([]byte(now))) {
		got = append(got, c.what)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := incompatible(parseProto([]byte(now)), parseProto(nil)); len(got) != 1 {
		t.Errorf("a file that is removed: %q", got)
	}
}
