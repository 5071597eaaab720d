//! The administrative properties of a channel (Notification Service 1.1, 2.5.7).

use spandrel::services::cos_notification::{
    self as names, Property, PropertyError, PropertyRange, QoSErrorCode, UnsupportedAdmin,
};
use spandrel::types::Any;

/// The bounds of a channel that its clients set; zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AdminSettings {
    max_queue_length: i32,
    max_consumers: i32,
    max_suppliers: i32,
    pub(crate) rejects_new_events: bool,
}

fn bound(number: i32) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number > 0)
}

impl AdminSettings {
    /// These settings with others in place of them; all or none.
    ///
    /// # Errors
    /// Each property that is not known, or whose value has another type or is negative.
    pub(crate) fn with(mut self, properties: &[Property]) -> Result<Self, UnsupportedAdmin> {
        let mut errors = Vec::new();
        for Property { name, value } in properties {
            let number = match &**name {
                names::MAX_QUEUE_LENGTH => &mut self.max_queue_length,
                names::MAX_CONSUMERS => &mut self.max_consumers,
                names::MAX_SUPPLIERS => &mut self.max_suppliers,
                names::REJECT_NEW_EVENTS => {
                    match value.extract() {
                        Ok(rejects) => self.rejects_new_events = rejects,
                        Err(_) => errors.push(error(QoSErrorCode::BadType, name, PropertyRange::default())),
                    }
                    continue;
                }
                _ => {
                    errors.push(error(QoSErrorCode::BadProperty, name, PropertyRange::default()));
                    continue;
                }
            };
            let any = |number: i32| Any::new(number).unwrap_or_default();
            let range = || PropertyRange { low_val: any(0), high_val: any(i32::MAX) };
            match value.extract::<i32>() {
                Ok(value) if value >= 0 => *number = value,
                Ok(_) => errors.push(error(QoSErrorCode::BadValue, name, range())),
                Err(_) => errors.push(error(QoSErrorCode::BadType, name, range())),
            }
        }
        if errors.is_empty() { Ok(self) } else { Err(UnsupportedAdmin { admin_err: errors }) }
    }

    pub(crate) fn properties(&self) -> Vec<Property> {
        let number =
            |name: &str, value: i32| Property { name: name.to_owned(), value: Any::new(value).unwrap_or_default() };
        let rejects = Any::new(self.rejects_new_events).unwrap_or_default();
        vec![
            number(names::MAX_QUEUE_LENGTH, self.max_queue_length),
            number(names::MAX_CONSUMERS, self.max_consumers),
            number(names::MAX_SUPPLIERS, self.max_suppliers),
            Property { name: names::REJECT_NEW_EVENTS.to_owned(), value: rejects },
        ]
    }

    /// The events that the channel holds for all its consumers.
    pub(crate) fn max_queue_length(&self) -> Option<usize> {
        bound(self.max_queue_length)
    }

    pub(crate) fn max_consumers(&self) -> Option<usize> {
        bound(self.max_consumers)
    }

    pub(crate) fn max_suppliers(&self) -> Option<usize> {
        bound(self.max_suppliers)
    }
}

fn error(code: QoSErrorCode, name: &str, available_range: PropertyRange) -> PropertyError {
    PropertyError { code, name: name.to_owned(), available_range }
}
