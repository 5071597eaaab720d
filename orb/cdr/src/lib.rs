//! Common Data Representation: how IDL values become octets and back.
