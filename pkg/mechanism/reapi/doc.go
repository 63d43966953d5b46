// Package reapi is a client of servers of the Remote Execution API, version 2
// (https://github.com/bazelbuild/remote-apis): of their action cache, which keeps the results of actions by a digest, and of their
// contents, which they keep by their SHA-256. It executes nothing.
//
// The protocol is gRPC, spoken with net/http, and its messages are written by hand with the wire format's own package: a client by
// google.golang.org/grpc would add a hundred packages to the program for eight methods.
//
// # What a caller may rely on
//
//   - Bytes that are read have the digest that was asked for. Others are an error, and count as missing.
//   - Every request has a deadline. A transfer may take as long as it moves, and not only by a few bytes now and then.
//   - An answer of a server is never believed further than its length: what is too large, cut short or no message is an error.
//
// # What must never be in here
//
// What the actions are, and whose results count.
package reapi
