//! The CORBA Interface Repository (CORBA 3.3 Part 1, clause 14): definitions of IDL at run time.
#![forbid(unsafe_code)]
