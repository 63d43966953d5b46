// Package recipetest checks that every field of a spec is part of its recipe.
package recipetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/recipe"
)

// EachField changes every value that spec holds, one at a time, and fails the test if the recipe stays the same. Slices and maps
// get one element, pointers a value, so that nothing is passed over. The paths in except decide no bytes; each must be there.
func EachField(t *testing.T, spec any, except ...string) {
	t.Helper()
	EachFieldOf(t, spec, func(spec any) []string { return recipe.Spec(spec) }, except...)
}

// EachFieldOf does so for a function that makes a recipe from more than the spec.
func EachFieldOf[T any](t *testing.T, spec T, of func(T) []string, except ...string) {
	t.Helper()
	v := reflect.New(reflect.TypeOf(spec)).Elem()
	seen := map[string]bool{}
	visit(v, reflect.TypeOf(spec).Name(), func(path string, change func()) {
		seen[path] = true
		before := of(v.Interface().(T))
		change()
		if same := slices.Equal(before, of(v.Interface().(T))); same != slices.Contains(except, path) {
			if same {
				t.Errorf("%s: another value leaves the recipe as it was, so stale bytes would be kept", path)
			} else {
				t.Errorf("%s: is part of the recipe, and listed as an exception", path)
			}
		}
	})
	for _, path := range except {
		if !seen[path] {
			t.Errorf("%s: an exception that is not a field", path)
		}
	}
	if len(seen) == 0 {
		t.Errorf("%T has no fields", spec)
	}
}

var timeType = reflect.TypeFor[time.Time]()

// visit calls change for every value below v. On the way, slices, maps and pointers get something to change.
func visit(v reflect.Value, path string, change func(path string, change func())) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		visit(v.Elem(), path, change)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		visit(v.Index(0), path+"[]", change)
	case reflect.Array:
		for i := range v.Len() {
			visit(v.Index(i), path+"[]", change)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		visit(value, path+"[]", func(path string, set func()) {
			v.SetMapIndex(key, value)
			change(path, func() { set(); v.SetMapIndex(key, value) })
		})
	case reflect.Struct:
		if v.Type() == timeType {
			change(path, func() { v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Hour))) })
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				panic(fmt.Sprintf("%s.%s: a spec has exported fields only", path, f.Name))
			}
			visit(v.Field(i), path+"."+f.Name, change)
		}
	case reflect.String:
		change(path, func() { v.SetString(v.String() + "x") })
	case reflect.Bool:
		change(path, func() { v.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		change(path, func() { v.SetInt(v.Int() + 1) })
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		change(path, func() { v.SetUint(v.Uint() + 1) })
	default:
		panic(fmt.Sprintf("%s: a spec holds data only, and this is a %s", path, v.Kind()))
	}
}
