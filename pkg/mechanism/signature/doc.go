// Package signature signs bytes, and checks signatures, with keys of ECDSA on the curves P-256 and P-384, with digests by SHA-256, and of
// Ed25519. Keys and signatures have the forms that sigstore's clients and openssl read, and no service is asked.
//
// A [Bundle] is a signature as a file. A private key comes from a file or a variable, or stays in a plugin: see [ReadPrivate].
//
// What must never be in here: what is signed, and whose keys count.
package signature
