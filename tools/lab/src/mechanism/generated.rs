//! Stubs and skeletons of the experiments' interfaces, as the IDL compiler writes them.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "generated code offers all that the IDL says")]

pub(super) mod ttcp {
    spandrel::include_idl!("ttcp");
}

pub(crate) mod latency {
    spandrel::include_idl!("latency");
}

pub(crate) mod demux {
    spandrel::include_idl!("demux");
}

pub(crate) mod soak {
    spandrel::include_idl!("soak");
}

pub(crate) mod growth {
    spandrel::include_idl!("growth");
}
