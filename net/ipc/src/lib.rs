//! Typed endpoints over operating system handles.
