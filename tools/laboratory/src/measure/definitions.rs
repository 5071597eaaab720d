//! Counts of the definitions in the IDL of services (paper 001, table 7.9).

use spandrel_lab::LabError;
use spandrel_lab::bench::footprint;

use crate::series::{Measured, Series, Unit};

pub(super) fn measure() -> Result<Measured, LabError> {
    let mut measured = Measured::default();
    for row in footprint::definitions()? {
        let counts =
            [("structs", row.here.structures), ("sequences", row.here.sequences), ("operations", row.here.operations)];
        for (name, count) in counts {
            measured.series.push(Series::new(format!("{name} {}", row.service), Unit::Count, vec![count as f64]));
        }
    }
    measured.absent.push(("structs AVStreams".to_owned(), "this source tree has no such service".to_owned()));
    Ok(measured)
}
