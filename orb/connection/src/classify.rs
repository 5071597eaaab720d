//! The messages that each side of a connection may receive (CORBA 3.3 Part 2, 9.4).
//!
//! Messages with an unknown version or type are answered before: `GiopError::answer_version` (`error` of
//! `spandrel-giop`) has the reply to them.

use spandrel_cdr::GiopVersion;
use spandrel_giop::{MessageHeader, MessageType};

/// The role of the side that reads.
///
/// A connection is bidirectional once both sides may send requests over it (9.8).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It has opened the connection.
    Client,
    /// It has opened the connection, and takes requests over it.
    BidirectionalClient,
    /// It has accepted the connection.
    Server,
    /// It has accepted the connection, and sends requests over it.
    BidirectionalServer,
}

/// The kind of a message that may come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Incoming {
    /// A Request.
    Request,
    /// A LocateRequest.
    LocateRequest,
    /// A CancelRequest: the peer no longer waits for a reply.
    CancelRequest,
    /// A Reply or a LocateReply.
    Reply,
    /// A CloseConnection: no request without a reply was or will be processed.
    CloseConnection,
    /// A MessageError: the peer could not read a message of this side.
    MessageError,
}

/// A message that the peer may not send. It is answered with MessageError, and the connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Violation {
    /// The type of the message that may not come.
    pub message_type: MessageType,
}

/// Classifies a message by its header.
///
/// | message | client | bidirectional client | server | bidirectional server |
/// | --- | --- | --- | --- | --- |
/// | Request, LocateRequest, CancelRequest | violation | accepted | accepted | accepted |
/// | Reply, LocateReply | accepted | accepted | violation | accepted |
/// | CloseConnection before GIOP 1.2 | accepted | accepted | violation | violation |
/// | CloseConnection since GIOP 1.2 | accepted | accepted | accepted | accepted |
/// | MessageError | accepted | accepted | accepted | accepted |
/// | Fragment | violation | violation | violation | violation |
///
/// Fragments are joined before; one that is left continues no message. Before GIOP 1.2 only servers may send
/// CloseConnection (9.4.7).
///
/// # Errors
/// [`Violation`] for a message that the peer may not send.
#[inline]
pub fn classify(header: &MessageHeader, role: Role) -> Result<Incoming, Violation> {
    let accepts_requests = !matches!(role, Role::Client);
    let accepts_replies = !matches!(role, Role::Server);
    let is_client = matches!(role, Role::Client | Role::BidirectionalClient);
    match header.message_type {
        MessageType::Request if accepts_requests => Ok(Incoming::Request),
        MessageType::LocateRequest if accepts_requests => Ok(Incoming::LocateRequest),
        MessageType::CancelRequest if accepts_requests => Ok(Incoming::CancelRequest),
        MessageType::Reply | MessageType::LocateReply if accepts_replies => Ok(Incoming::Reply),
        MessageType::CloseConnection if is_client || header.version >= GiopVersion::V1_2 => {
            Ok(Incoming::CloseConnection)
        }
        MessageType::MessageError => Ok(Incoming::MessageError),
        message_type => Err(Violation { message_type }),
    }
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::ByteOrder;
    use spandrel_giop::bare_message;

    use super::*;

    /// The table: for each message and version the columns client, bidirectional client, server,
    /// bidirectional server.
    fn check_row(message_type: MessageType, minor: u8, row: [Option<Incoming>; 4]) {
        let roles = [Role::Client, Role::BidirectionalClient, Role::Server, Role::BidirectionalServer];
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let octets = bare_message(GiopVersion { major: 1, minor }, order, message_type);
            let header = MessageHeader::parse(&octets).expect("it is a header");
            for (role, expected) in roles.into_iter().zip(row) {
                let expected = expected.ok_or(Violation { message_type });
                assert_eq!(classify(&header, role), expected, "{message_type} of GIOP 1.{minor} to a {role:?}");
            }
        }
    }

    #[test]
    fn requests_come_from_clients_and_over_bidirectional_connections() {
        let rows = [
            (MessageType::Request, Incoming::Request),
            (MessageType::LocateRequest, Incoming::LocateRequest),
            (MessageType::CancelRequest, Incoming::CancelRequest),
        ];
        for minor in 0..=2 {
            for (message_type, incoming) in rows {
                check_row(message_type, minor, [None, Some(incoming), Some(incoming), Some(incoming)]);
            }
        }
    }

    #[test]
    fn replies_come_from_servers_and_over_bidirectional_connections() {
        let reply = Some(Incoming::Reply);
        for minor in 0..=2 {
            check_row(MessageType::Reply, minor, [reply, reply, None, reply]);
            check_row(MessageType::LocateReply, minor, [reply, reply, None, reply]);
        }
    }

    #[test]
    fn clients_may_close_since_giop_1_2() {
        let close = Some(Incoming::CloseConnection);
        check_row(MessageType::CloseConnection, 0, [close, close, None, None]);
        check_row(MessageType::CloseConnection, 1, [close, close, None, None]);
        check_row(MessageType::CloseConnection, 2, [close; 4]);
    }

    #[test]
    fn either_side_may_send_message_error() {
        for minor in 0..=2 {
            check_row(MessageType::MessageError, minor, [Some(Incoming::MessageError); 4]);
        }
    }

    #[test]
    fn a_fragment_that_continues_nothing_is_a_violation() {
        for minor in 1..=2 {
            check_row(MessageType::Fragment, minor, [None; 4]);
        }
    }
}
