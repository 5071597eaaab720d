//! The text of statistics for Prometheus.

use spandrel_metrics::{Kind, write_header, write_sample};

use super::{
    Statistics,
    events::{FAMILIES, Family, LEVELS},
};

impl Statistics {
    /// Renders all numbers in Prometheus' text exposition format 0.0.4, to be served as
    /// [`CONTENT_TYPE`](super::CONTENT_TYPE).
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(8 << 10);
        for Family { name, help, series } in FAMILIES {
            write_header(&mut text, name, help, Kind::Counter);
            for (labels, event) in *series {
                write_sample(&mut text, name, labels, self.count(*event));
            }
        }
        for Family { name, help, series } in LEVELS {
            write_header(&mut text, name, help, Kind::Gauge);
            for (labels, level) in *series {
                write_sample(&mut text, name, labels, self.level(*level));
            }
        }
        text
    }
}
