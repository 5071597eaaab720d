//! The OMG's naming service (CosNaming 1.3): names for object references, in contexts that are kept on disk.
#![forbid(unsafe_code)]
