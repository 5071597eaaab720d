//! Tests of the ladder with the data of the experiment.

use spandrel_cdr::{Encoder, Wire};

use super::data::{Data, Engine};
use crate::ladder::{Calls, Rung, calls, decode, encode};
use crate::workload::DataType;

#[test]
fn every_rung_encodes_like_the_compiled_code_and_decodes_it() {
    for data_type in DataType::ALL {
        let data = Data::new(data_type, 5_000);
        let (node, memory) = (data.node(), data.memory());
        let mut out = Encoder::new(Wire::default());
        data.encode(Engine::Compiled, &mut out).unwrap();
        let expected = out.to_vec();
        for rung in Rung::ALL {
            let mut octets = vec![0xaa; 7];
            encode(rung, &node, &memory, &mut octets);
            assert!(octets == expected, "{data_type} by {}", rung.name());
            assert!(decode(rung, &node, &octets).unwrap() == memory, "{data_type} by {}", rung.name());
        }
    }
}

#[test]
fn truncated_data_is_an_error() {
    let data = Data::new(DataType::Struct, 240);
    let mut octets = Vec::new();
    for rung in Rung::ALL {
        encode(rung, &data.node(), &data.memory(), &mut octets);
        for length in 0..octets.len() {
            assert!(decode(rung, &data.node(), &octets[..length]).is_err(), "{length} octets by {}", rung.name());
        }
    }
}

#[test]
fn each_rung_makes_fewer_calls() {
    let data = Data::new(DataType::Struct, 2_400);
    let all = Rung::ALL.map(|rung| calls(rung, &data.node(), &data.memory()));
    let sum = |calls: &Calls| calls.iter().map(|(_, count)| count).sum::<u64>();
    for pair in all.windows(2) {
        assert!(sum(&pair[1].0) <= sum(&pair[0].0) && sum(&pair[1].1) <= sum(&pair[0].1));
    }
    let (first, last) = (&all[0], &all[Rung::ALL.len() - 1]);
    assert!(sum(&last.0) * 4 < sum(&first.0) && sum(&last.1) * 4 < sum(&first.1), "{all:?}");
}
