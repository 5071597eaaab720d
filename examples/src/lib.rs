//! Small complete programs that use Spandrel. Each is in a folder beside this one; the tests run all of them.
#![forbid(unsafe_code)]
