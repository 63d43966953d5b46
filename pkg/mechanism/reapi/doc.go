// Package reapi is a client of servers of the Remote Execution API, version 2
// (https://github.com/bazelbuild/remote-apis): of their action cache, which keeps the results of actions by a digest, and of their
// contents, which they keep by their SHA-256. It executes nothing.
//
// google.golang.org/grpc speaks the protocol, and the messages are those that the API's authors generate. This package adds what the
// promises below need, and its own types, so that others know neither.
//
// # What a caller may rely on
//
//   - Bytes that are read have the digest that was asked for. Others are an error, and count as missing.
//   - Every request has a deadline. A transfer may take as long as its connection moves, and not only by a few bytes now and then.
//   - An answer of a server is never believed further than its length: what is too large, cut short or no message is an error.
//   - No proxy is asked, whatever the environment says.
//
// # What must never be in here
//
// What the actions are, and whose results count.
package reapi
