package verify

import (
	"maps"
	"slices"
	"testing"
)

func TestTheAuditLogMustNotHaveWhatIsInASecret(t *testing.T) {
	t.Parallel()
	const metadata = `{"verb":"create","user":{"username":"me"},"objectRef":{"namespace":"a","name":"seen"},"responseStatus":{"code":201}}`
	for text, want := range map[string]bool{
		metadata: false,
		metadata + "\n" + `{"requestObject":{"kind":"Secret","data":{"word":"b3Blbi1zZXNhbWU="}}}`:       true,
		metadata + "\n" + `{"requestObject":{"kind":"Secret","stringData":{"word":"open-sesame"}}}`:      true,
		metadata + "\n" + `{"requestObject":{"kind":"Secret","data":{"word":"c29tZXRoaW5nIGVsc2U="}}}\n`: false,
	} {
		if got := reveals([]byte(text), "open-sesame"); got != want {
			t.Errorf("that it reveals the word is %v, want %v: %s", got, want, text)
		}
	}
}

func TestTheAuditLogSaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	log := `{"verb":"create","user":{"username":"me"},"objectRef":{"namespace":"a","name":"seen"},"responseStatus":{"code":201}}
{"verb":"create","user":{"username":"me"},"objectRef":{"namespace":"b","name":"seen"},"responseStatus":{"code":409}}
{"verb":"get","impersonatedUser":{"username":"you"},"objectRef":{"namespace":"a","name":"seen"},"responseStatus":{"code":403}}
{"verb":"update","user":{"username":"me"},"objectRef":{"namespace":"a","na`
	got := map[string]bool{}
	audited([]byte(log), "a", "seen", got)
	if events := slices.Sorted(maps.Keys(got)); !slices.Equal(events, []string{"create by me: 201", "get by you: 403"}) {
		t.Errorf("the log has %q", events)
	}
}
