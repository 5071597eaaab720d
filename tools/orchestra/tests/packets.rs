//! The packets of an exchange, from the fields of `tshark` to the form of appendix D.

use std::collections::BTreeMap;

use spandrel_orchestra::packets::{Packet, connection, table};

/// The beginning and the end of the exchange of appendix D, behind a packet of another connection.
const LINES: &str = "\
0\t3421.000001\t10.0.0.9\t9\t10.0.0.2\t60002\t0x0010\t1\t7\t1\t8\t0\t100\t\t\t\t\t
1\t3424.536360\t10.0.0.1\t30404\t10.0.0.2\t60002\t0x0002\t0\t2811444960\t\t0\t0\t65535\t1460\t2,1,3,1,1,8\t4312702\t0\t1
1\t3424.536380\t10.0.0.2\t60002\t10.0.0.1\t30404\t0x0012\t0\t1799787272\t1\t2811444961\t0\t5792\t1460\t2,4,1,1,8,1,3\t59771\t4312702\t0
1\t3424.537967\t10.0.0.2\t60002\t10.0.0.1\t30404\t0x0018\t1\t1799787273\t1\t2811444961\t7\t5792\t\t1,1,8\t59771\t4312702\t
1\t3424.538368\t10.0.0.1\t30404\t10.0.0.2\t60002\t0x0010\t1\t2811444961\t8\t1799787280\t0\t33304\t\t1,1,8\t4312702\t59771\t
1\t3424.548403\t10.0.0.1\t30404\t10.0.0.2\t60002\t0x0011\t5\t2811444965\t4008\t1799791280\t0\t33304\t\t1,1,8\t4312703\t59771\t
";

const EXPECTED: &str = "\
| time | direction | flags | sequence | ack | window | options |
| ---: | --- | --- | ---: | ---: | ---: | --- |
| 00:57:04.536360 | starship.30404 > 10.0.0.2.60002 | S | 2811444960:2811444960(0) |  | 65535 | mss 1460,nop,wscale 1,nop,nop,timestamp 4312702 0 |
| 00:57:04.536380 | 10.0.0.2.60002 > starship.30404 | S | 1799787272:1799787272(0) | 2811444961 | 5792 | mss 1460,sackOK,nop,nop,timestamp 59771 4312702,nop,wscale 0 |
| 00:57:04.537967 | 10.0.0.2.60002 > starship.30404 | P | 1:8(7) | 1 | 5792 | nop,nop,timestamp 59771 4312702 |
| 00:57:04.538368 | starship.30404 > 10.0.0.2.60002 | . |  | 8 | 33304 | nop,nop,timestamp 4312702 59771 |
| 00:57:04.548403 | starship.30404 > 10.0.0.2.60002 | F | 5:5(0) | 4008 | 33304 | nop,nop,timestamp 4312703 59771 |
";

#[test]
fn the_first_connection_has_the_form_of_appendix_d() {
    let names = BTreeMap::from([("10.0.0.1".parse().unwrap(), "starship".to_owned())]);
    assert_eq!(table(&connection(LINES, None).unwrap(), &names), EXPECTED);
    assert_eq!(connection(LINES, Some("10.0.0.1".parse().unwrap())).unwrap().len(), 5);
    assert!(connection(LINES, Some("10.0.0.9".parse().unwrap())).is_err(), "it opens no connection");
}

#[test]
fn a_malformed_field_is_an_error() {
    let line = LINES.lines().nth(1).unwrap();
    assert!(Packet::parse(line).is_ok());
    for (right, wrong) in [("30404", "many"), ("0x0002", "SYN"), ("10.0.0.1", ""), ("3424.53", "x"), ("\t1460", "")] {
        assert!(Packet::parse(&line.replacen(right, wrong, 1)).is_err(), "{wrong}");
    }
}
