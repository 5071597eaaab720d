//! Small complete programs that use Spandrel. Each is a folder beside this one; the tests run them all.
#![forbid(unsafe_code)]
