//! Parsing of XML, with errors that have a line and a column.

use quick_xml::de::Deserializer;
use quick_xml::errors::serialize::DeError;
use quick_xml::events::{BytesRef, Event};
use quick_xml::reader::Reader;
use serde::de::DeserializeOwned;

use crate::json::without_type_names;

/// The error has the position.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    // Errors of the deserialiser have no positions of their own.
    check_well_formed(text)?;
    let mut document = Deserializer::from_str(text);
    T::deserialize(&mut document).map_err(|error| {
        let message = match error {
            DeError::Custom(message) => without_type_names(&message),
            DeError::MixedContent(tag) => format!("unexpected tag <{tag}> in a text"),
            error => error.to_string(),
        };
        locate(text, document.get_ref().get_ref().buffer_position(), &message)
    })
}

fn locate(text: &str, position: u64, message: &str) -> String {
    let before = &text.as_bytes()[..text.len().min(position as usize)];
    let before = String::from_utf8_lossy(before);
    let line = before.rsplit('\n').next().unwrap_or_default();
    format!("line {}, column {}: {message}", before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// The error has the position.
pub(crate) fn check_well_formed(text: &str) -> Result<(), String> {
    let mut events = Reader::from_str(text);
    let (mut elements, mut open) = (0, 0);
    loop {
        let start = events.buffer_position();
        match events.read_event() {
            Ok(Event::Eof) if elements == 0 => return Err(locate(text, start, "no XML element")),
            Ok(Event::Eof) if open > 0 => return Err(locate(text, start, "unexpected end within an element")),
            Ok(Event::Eof) => return Ok(()),
            Ok(Event::Empty(_)) => elements += 1,
            Ok(Event::Start(_)) => (elements, open) = (elements + 1, open + 1),
            Ok(Event::End(_)) => open -= 1,
            Ok(Event::GeneralRef(entity)) if !is_predefined(&entity) => {
                let message = format!("unknown entity `{}`: expected a character or its number", &*entity);
                return Err(locate(text, start, &message));
            }
            Ok(_) => {}
            Err(error) => return Err(locate(text, events.error_position(), &error.to_string())),
        }
    }
}

/// Character references and predefined entities need no document type.
fn is_predefined(entity: &BytesRef<'_>) -> bool {
    matches!(entity.resolve_char_ref(), Ok(Some(_))) || matches!(&**entity, "amp" | "lt" | "gt" | "apos" | "quot")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_xml_is_reported() {
        assert_eq!(check_well_formed("<?xml version=\"1.0\"?><a><b/></a>"), Ok(()));
        for broken in ["", "plain text", "<a", "<a></b>", "<a><b></b>"] {
            assert!(check_well_formed(broken).is_err(), "{broken}");
        }
    }
}
