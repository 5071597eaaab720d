//! The items of other crates in the formats of flows. The fuzz targets build these formats without the ORB, with such a module
//! of their own.

pub(crate) use spandrel::bulk::wire::{TOKEN_OCTETS, Token};
pub(crate) use spandrel::services::flow_protocol;
