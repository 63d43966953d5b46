package publish

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/verify"
)

// A pushable is a release with images in a layout, for linux/amd64 and further processors. All images have one layer, and one of their own.
func (o owner) pushable(t *testing.T, version, content string, more ...string) (accepted *Release, images string) {
	t.Helper()
	images = filepath.Join(t.TempDir(), "oci")
	to, err := layout.Write(images, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	dir := o.release(t, version, func(r *release.Release) {
		r.Artifacts = slices.DeleteFunc(r.Artifacts, func(a release.Artifact) bool { return a.Kind == release.Index })
		r.Sets = []string{"server", "addons"}
		server := slices.IndexFunc(r.Artifacts, func(a release.Artifact) bool { return a.Name == "kubernetes-server-linux-amd64.tar.gz" })
		r.Artifacts[server].Platform = platform.Platform{OS: "linux", Arch: "amd64"}
		own := "registry.k8s.io/kube-proxy:" + strings.ReplaceAll(version, "+", "_")
		for _, name := range []string{"registry.k8s.io/coredns/coredns:v1.14.6", "registry.k8s.io/etcd:3.7.0-0", own} {
			repository, tag, _ := strings.Cut(name, ":")
			index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
			var of []string
			for _, arch := range append([]string{"amd64"}, more...) {
				on := platform.Platform{OS: "linux", Arch: arch}
				image := made(t, []byte(strings.Repeat("a base", 10_000)), []byte(name+content+strings.TrimPrefix(arch, "amd64")))
				image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
				index = mutate.AppendManifests(index, mutate.IndexAddendum{
					Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: on.OS, Architecture: on.Arch}}})
				one := described(t, image)
				one.Name, one.Kind, one.Platform = repository+"-"+arch+":"+tag, release.Image, on
				archive := artifact("linux/"+arch+"/"+filepath.Base(repository)+".tar", release.Archive, []byte(name))
				archive.Of, of = []string{one.Name}, append(of, one.Name)
				r.Artifacts = append(r.Artifacts, one, archive)
				if arch == "amd64" {
					member := release.Member{Path: "kubernetes/" + archive.Name, Artifact: archive.Name}
					r.Artifacts[server].Members = append(r.Artifacts[server].Members, member)
				}
			}
			if err := to.AppendIndex(index, layout.WithAnnotations(map[string]string{sign.RefName: name})); err != nil {
				t.Fatal(err)
			}
			all := described(t, index)
			all.Name, all.Kind, all.Of = name, release.Index, of
			r.Artifacts = append(r.Artifacts, all)
		}
		r.Artifacts = append(r.Artifacts, debs()...)
		slices.SortFunc(r.Artifacts, func(a, b release.Artifact) int { return strings.Compare(a.Name, b.Name) })
	})
	for _, a := range debs() {
		write(t, dir, a.Path, []byte(a.Name))
	}
	accepted, err = Accept(t.Context(), dir, o.want(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return accepted, images
}

// debs returns a deb for each of two processors.
func debs() []release.Artifact {
	var all []release.Artifact
	for _, arch := range []string{"amd64", "arm64"} {
		a := artifact("packages/kubelet_"+arch+".deb", "deb", []byte("packages/kubelet_"+arch+".deb"))
		a.Path, a.Platform = a.Name, platform.Platform{OS: "linux", Arch: arch}
		all = append(all, a)
	}
	return all
}

func made(t *testing.T, layers ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, data := range layers {
		var err error
		if image, err = mutate.AppendLayers(image, static.NewLayer(data, types.OCIUncompressedLayer)); err != nil {
			t.Fatal(err)
		}
	}
	return image
}

func described(t *testing.T, m interface {
	RawManifest() ([]byte, error)
	MediaType() (types.MediaType, error)
}) release.Artifact {
	t.Helper()
	data, err := m.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	kind, err := m.MediaType()
	if err != nil {
		t.Fatal(err)
	}
	a := artifact("", "", data)
	a.MediaType = string(kind)
	return a
}

// serve starts a registry, and returns a repository in it.
func serve(t *testing.T, listsReferrers bool, front func(http.Handler) http.Handler) string {
	t.Helper()
	handler := ggcr.New(ggcr.WithReferrersSupport(listsReferrers), ggcr.Logger(log.New(io.Discard, "", 0)))
	if front != nil {
		handler = front(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/k8s"
}

func push(t *testing.T, r *Release, repository, images string, move ...string) *Images {
	t.Helper()
	p, err := r.PlanImages(t.Context(), repository, images, move)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// trusted returns an error unless what a tag names is whole, and signed.
func (o owner) trusted(ctx context.Context, tag string) error {
	report, err := verify.Image(ctx, tag, o.want())
	if err == nil && !report.OK() {
		err = errors.New(report.Problem)
	}
	return err
}

func TestImagesArePushedWithWhatRefersToThem(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string]bool{"a registry that lists referrers": true, "one that does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mounted atomic.Int32
			at := serve(t, lists, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Query().Has("mount") {
						mounted.Add(1)
					}
					// This registry has one store for all repositories.
					if r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/blobs/") {
						http.NotFound(w, r)
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			o := newOwner(t)
			r, images := o.pushable(t, "v1.37.0+acme.1", "")
			planned, err := r.PlanImages(t.Context(), at, images, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(planned.Tags) != 4 { // coredns has two names
				t.Errorf("planned %+v", planned.Tags)
			}
			if p := push(t, r, at, images); p.Sent < 60_000 || p.Sent > 500_000 {
				t.Errorf("sent %d bytes", p.Sent)
			}
			if mounted.Load() == 0 {
				t.Error("no layer was mounted from another repository")
			}
			for _, tag := range []string{"/coredns:v1.14.6", "/coredns/coredns:v1.14.6", "/etcd:3.7.0-0", "/kube-proxy:v1.37.0_acme.1"} {
				if err := o.trusted(t.Context(), at+tag); err != nil {
					t.Errorf("%s: %v", tag, err)
				}
			}
			// A layout that has referrers, perhaps of others, gives none of them.
			if err := sign.Layout(t.Context(), r.dir, images, images+"-signed"); err != nil {
				t.Fatal(err)
			}
			again, err := r.PlanImages(t.Context(), at, images+"-signed", nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(again.Manifests) != len(planned.Manifests) {
				t.Errorf("%d manifests of a signed layout, and %d of one that is not", len(again.Manifests), len(planned.Manifests))
			}
			if err := again.Send(t.Context()); err != nil || again.Sent != 0 {
				t.Errorf("the second time, %d bytes are sent: %v", again.Sent, err)
			}
		})
	}
}

func TestTagsMoveForwardOnly(t *testing.T) {
	t.Parallel()
	at := serve(t, false, nil)
	o := newOwner(t)
	first, images := o.pushable(t, "v1.37.0+acme.2", "")
	push(t, first, at, images)
	notes := func(p *Images) string {
		var text []string
		for _, t := range p.Tags {
			if t.Note != "" {
				text = append(text, strings.TrimPrefix(t.Name, at+"/")+": "+t.Note)
			}
		}
		return strings.Join(text, "\n")
	}
	newer, newerImages := o.pushable(t, "v1.37.0+acme.10", "by a newer Go")
	const moved = `coredns/coredns:v1.14.6: it moves from the image of v1.37.0+acme.2
coredns:v1.14.6: it moves from the image of v1.37.0+acme.2
etcd:3.7.0-0: it moves from the image of v1.37.0+acme.2`
	if got := notes(push(t, newer, at, newerImages)); got != moved {
		t.Errorf("a newer release:\n%s", got)
	}
	older, olderImages := o.pushable(t, "v1.37.0+acme.1", "by an older Go")
	if got := notes(push(t, older, at, olderImages)); got != strings.ReplaceAll(strings.ReplaceAll(moved, "moves from", "stays at"),
		"acme.2", "acme.10, which is newer") {
		t.Errorf("an older release:\n%s", got)
	}
	for _, tag := range []string{"/etcd:3.7.0-0", "/kube-proxy:v1.37.0_acme.1", "/kube-proxy:v1.37.0_acme.10"} {
		if err := o.trusted(t.Context(), at+tag); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}

	// As after a withdrawal.
	if got := notes(push(t, older, at, olderImages, "coredns", "etcd")); strings.Count(got, "and was to move") != 3 {
		t.Errorf("all were to move back: %s", got)
	}

	// Nobody whom this owner trusts says of which release the images are.
	other := newOwner(t)
	theirs, theirImages := other.pushable(t, "v1.37.0+other.1", "by others")
	_, err := theirs.PlanImages(t.Context(), at, theirImages, nil)
	refused, ok := errors.AsType[*TagError](err)
	if !ok || len(refused.Tags) != 3 || !slices.Equal(refused.Fixed(), []string{"coredns", "etcd"}) {
		t.Fatalf("error %v", err)
	}
	if got := notes(push(t, theirs, at, theirImages, "coredns", "etcd")); strings.Count(got, "and was to move") != 3 {
		t.Errorf("all were to move: %s", got)
	}

	// The tag of a release does not move.
	same, sameImages := o.pushable(t, "v1.37.0+acme.10", "made again")
	_, err = same.PlanImages(t.Context(), at, sameImages, []string{"coredns", "etcd", "kube-proxy"})
	if refused, ok := errors.AsType[*TagError](err); !ok || len(refused.Tags) != 1 || refused.Fixed() != nil {
		t.Errorf("error %v", err)
	}
	_, err = same.PlanImages(t.Context(), at, sameImages, []string{"edcd"})
	if !badrequest.Is(err) || !strings.Contains(err.Error(), "etcd?") {
		t.Errorf("error %v", err)
	}
	_, err = same.PlanImages(t.Context(), at, images, nil)
	if err == nil || !strings.Contains(err.Error(), "the layout of another release") {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(sameImages)); len(left) != 1 {
		t.Errorf("beside the layout is %v", left)
	}
}

// However a publication ends, tags name what is whole, and the same publication again ends the same.
func TestPushIsContinued(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, images := o.pushable(t, "v1.37.0+acme.1", "")
	tags := []string{"/coredns:v1.14.6", "/coredns/coredns:v1.14.6", "/etcd:3.7.0-0", "/kube-proxy:v1.37.0_acme.1"}
	stopped := 0
	for after := int32(1); ; after += after/3 + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int32
		at := serve(t, after%2 == 0, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) == after {
					cancel()
				}
				h.ServeHTTP(w, r)
			})
		})
		p, err := r.PlanImages(ctx, at, images, nil)
		if err == nil {
			err = p.Send(ctx)
		}
		ended := err == nil
		cancel()
		if !ended {
			stopped++
		}
		for _, tag := range tags {
			err := o.trusted(t.Context(), at+tag)
			absent := err != nil && (strings.Contains(err.Error(), "MANIFEST_UNKNOWN") || strings.Contains(err.Error(), "NAME_UNKNOWN"))
			if err != nil && (ended || !absent) {
				t.Errorf("after %d requests, %s: %v", after, tag, err)
			}
		}
		push(t, r, at, images)
		for _, tag := range tags {
			if err := o.trusted(t.Context(), at+tag); err != nil {
				t.Errorf("after %d requests and again, %s: %v", after, tag, err)
			}
		}
		if ended {
			break
		}
	}
	if stopped < 5 {
		t.Errorf("only %d publications were stopped", stopped)
	}
}

// Whatever a registry does with what it gets, or says that it has, tags name what is whole; and when it does better, the same publication
// again ends as it should.
func TestFaultsOfRegistries(t *testing.T) {
	t.Parallel()
	const some = 40_000 // bytes, of a layer with 70,000
	uploads := func(r *http.Request) bool { return r.Method == http.MethodPatch }
	asksForBlobs := func(r *http.Request) bool {
		return r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/blobs/")
	}
	tags := func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/kube-proxy/manifests/v1.37.0_acme.1")
	}
	refuse := func(w http.ResponseWriter) {
		http.Error(w, `{"errors":[{"code":"DENIED","message":"the tag is there"}]}`, http.StatusConflict)
	}
	for name, tt := range map[string]struct {
		to   func(*http.Request) bool
		does func(http.Handler, http.ResponseWriter, *http.Request)
		want string // in the error; "" if there is none
	}{
		"cuts off": {uploads, func(_ http.Handler, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, some)
			panic(http.ErrAbortHandler)
		}, "push 127.0.0.1:"},
		"takes a part": {uploads, func(h http.Handler, w http.ResponseWriter, r *http.Request) {
			r.Body = io.NopCloser(io.LimitReader(r.Body, some))
			h.ServeHTTP(w, r)
		}, "push 127.0.0.1:"},
		"has a part": {asksForBlobs, func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "7")
		}, "the registry has 7 bytes of sha256:"},
		"sets no tag": {tags, func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { refuse(w) }, "the tag is there"},
		"sets no tag twice": {tags, func(h http.Handler, w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(httptest.NewRecorder(), r) // somebody else was faster
			refuse(w)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sound atomic.Bool
			at := serve(t, false, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !sound.Load() && tt.to(r) {
						tt.does(h, w, r)
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			o := newOwner(t)
			r, images := o.pushable(t, "v1.37.0+acme.1", "")
			p, err := r.PlanImages(t.Context(), at, images, nil)
			if err == nil {
				err = p.Send(t.Context())
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			sound.Store(true)
			for _, tag := range p.Tags {
				is, err := p.head(t.Context(), tag.at)
				if err == nil && is != nil {
					err = o.trusted(t.Context(), tag.Name)
				}
				if err != nil {
					t.Errorf("%s: %v", tag.Name, err)
				}
			}
			for _, tag := range push(t, r, at, images).Tags {
				if err := o.trusted(t.Context(), tag.Name); err != nil {
					t.Errorf("again, %s: %v", tag.Name, err)
				}
			}
		})
	}
}

// A registry that has too much to do is asked again.
func TestBusyRegistriesAreAskedAgain(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	r, images := o.pushable(t, "v1.37.0+acme.1", "")
	var n atomic.Int32
	at := serve(t, false, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if i := n.Add(1); i < 4 || i%9 == 0 {
				w.Header().Set("Retry-After", "0")
				status := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}[i%2]
				http.Error(w, `{"errors":[{"code":"TOOMANYREQUESTS"}]}`, status)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, r, at, images)
	if err := o.trusted(t.Context(), at+"/etcd:3.7.0-0"); err != nil {
		t.Error(err)
	}
}

func TestRegistriesSayHowLongToWait(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"7": 7 * time.Second, "": time.Minute, "soon": time.Minute, "99999999": longest,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0} {
		if got := wanted(&http.Response{Header: http.Header{"Retry-After": {text}}}, time.Minute); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	var p patient
	p.hold(time.Hour)
	p.hold(time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.pause(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Until(p.until) < 59*time.Minute {
		t.Errorf("error %v, held until %v", err, p.until)
	}
}
