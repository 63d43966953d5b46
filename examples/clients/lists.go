package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// A list is of a version of the whole cluster, which resourceVersion and resourceVersionMatch choose. Between the two ConfigMaps, the
// first existed alone.
func (e *example) lists(ctx context.Context) error {
	for _, l := range []struct {
		title   string
		options metav1.ListOptions
	}{
		// The newest version: everything that was acknowledged before the request is in it.
		{"of the newest version", metav1.ListOptions{}},
		// Any version that the server has at hand. That costs it least; informers start so. It may be older than what this program has
		// seen before, since another replica of the server may have answered then.
		{`of any version ("0")`, metav1.ListOptions{ResourceVersion: "0"}},
		// This version, while the server still has it. Later, the error is apierrors.IsResourceExpired: list again without a version.
		{"of exactly the first's version", metav1.ListOptions{
			ResourceVersion: e.versions[0], ResourceVersionMatch: metav1.ResourceVersionMatchExact}},
		// This version or a later one: what this program has written is in it.
		{"not older than the second's version", metav1.ListOptions{
			ResourceVersion: e.versions[1], ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}},
	} {
		l.options.LabelSelector = e.selector()
		found, err := e.client.CoreV1().ConfigMaps(e.namespace).List(ctx, l.options)
		if err != nil {
			return err
		}
		fmt.Printf("list %s: %d\n", l.title, len(found.Items))
	}

	// A version that the server has not reached: after some seconds it says so.
	now, err := strconv.ParseUint(e.versions[1], 10, 64)
	if err != nil {
		return err
	}
	_, err = e.client.CoreV1().ConfigMaps(e.namespace).List(ctx, metav1.ListOptions{
		ResourceVersion:      strconv.FormatUint(now+1_000_000, 10),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return fmt.Errorf("a list not older than a future version: %v", err)
	}
	fmt.Printf("list not older than a future version: refused: %v\n", err)
	return nil
}

// A field selector leaves out objects by their fields. Each resource has few fields for it: metadata.name and metadata.namespace, and some
// more, such as spec.nodeName of Pods. A custom resource has those that its definition lists.
func (e *example) fields(ctx context.Context) error {
	first := e.name + "-first"
	for _, selector := range []string{
		fields.OneTermEqualSelector(metav1.ObjectNameField, first).String(),
		fields.OneTermNotEqualSelector(metav1.ObjectNameField, first).String(),
	} {
		found, err := e.client.CoreV1().ConfigMaps(e.namespace).List(ctx, metav1.ListOptions{
			LabelSelector: e.selector(), FieldSelector: selector})
		if err != nil {
			return err
		}
		for _, c := range found.Items {
			fmt.Printf("field selector %s: %s\n", selector, c.Name)
		}
	}

	// Other fields are refused. A label serves the purpose.
	_, err := e.client.CoreV1().ConfigMaps(e.namespace).List(ctx, metav1.ListOptions{FieldSelector: "data.color=blue"})
	if err == nil {
		return errors.New("the server selects by data.color")
	}
	if !apierrors.IsBadRequest(err) {
		return err
	}
	fmt.Printf("field selector data.color=blue: refused: %v\n", err)
	return nil
}
