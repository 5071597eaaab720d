//! Metrics in Prometheus' text exposition format 0.0.4: families of series, each with a line of help, its type, and a line
//! per series.
//!
//! | for | items |
//! | --- | --- |
//! | writing | [`write_header`], [`write_sample`], [`escape_label`] |
//! | reading | [`series`], [`read`] |
//! | metrics of several parts of a process | [`Families`] |
//! | serving, with the feature `endpoint` | `Endpoint` |
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>
//!
//! ```
//! use spandrel_metrics::{Families, Kind, escape_label, series, write_header, write_sample};
//!
//! let mut text = String::new();
//! write_header(&mut text, "calls_total", "Calls of the account.", Kind::Counter);
//! write_sample(&mut text, "calls_total", &format!(r#"operation="{}""#, escape_label("deposit")), 3);
//!
//! let mut families = Families::default();
//! families.add(&text, Some(("service", "Bank")));
//! let text = families.to_string();
//! let calls = series(&text).next().unwrap();
//! assert_eq!((calls.name(), calls.label("service"), calls.value()), ("calls_total", Some("Bank"), 3.0));
//! ```
#![forbid(unsafe_code)]

mod client;
#[cfg(feature = "endpoint")]
mod endpoint;
mod families;
#[cfg(feature = "endpoint")]
mod http;
mod series;
mod text;

pub use client::read;
#[cfg(feature = "endpoint")]
pub use endpoint::Endpoint;
pub use families::Families;
pub use series::{Series, series};
pub use text::{CONTENT_TYPE, Kind, escape_label, write_header, write_sample};
