// Package clients is a module of its own for the programs that read what slipway signs and describes, in tests: sigstore-go for signatures,
// syft and the standards' own schemas for bills of materials, the library of OpenVEX for findings; and kind, which makes nodes of published
// tarballs. They need hundreds of modules that slipway does not. Cosign is Debian's.
package clients
