//! Empty: the dependencies are what is compiled.
