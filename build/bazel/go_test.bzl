"""Tests of go.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//build/bazel:go.bzl", "module_of")
load("//build/bazel/generated:config.bzl", "MODULES")

def _module_of_test_impl(ctx):
    env = unittest.begin(ctx)

    def check(module, importpath):
        got = module_of(importpath)
        want = MODULES[module]
        asserts.equals(env, (want.language, want.name), (got.language, got.metadata.name), importpath)

    own = [path for path, module in MODULES.items() if not hasattr(module, "version") and not hasattr(module, "folder")][0]
    check(own, own)
    check(own, own + "/kubectl")

    # A package below a module's path may be of another module.
    check("go.opentelemetry.io/otel", "go.opentelemetry.io/otel/internal/global")
    check("go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/sdk/trace")

    # A path that only begins with the same letters is not below it.
    asserts.equals(env, None, module_of(own + "x"))
    asserts.equals(env, None, module_of("fmt"))
    return unittest.end(env)

_module_of_test = unittest.make(_module_of_test_impl)

def module_of_test_suite(name):
    unittest.suite(name, _module_of_test)
