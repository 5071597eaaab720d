//! Authorization: decides by a policy which peers may call which operations of which objects.
#![forbid(unsafe_code)]
