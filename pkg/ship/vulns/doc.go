// Package vulns finds known vulnerabilities in what a release consists of.
//
// [Find] looks at every binary, by the packages that it holds, and at the Debian packages in images. [Exceptions] of the tree say what is
// no danger there, why, and until when somebody has to look again. The [Report] is a value; text, JSON, OpenVEX and SARIF are views of it.
//
// What must never be in here: how a release is made, and where databases are.
package vulns
