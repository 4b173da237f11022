//! Validation of JSON by the published schemas.

use boon::{Compiler, Schemas};
use serde_json::Value;

/// Validates a value by a schema; the error has the place of each mismatch.
pub(crate) fn validate(schema: &Value, value: &Value) -> Result<(), String> {
    // Nothing is fetched from it.
    const LOCATION: &str = "https://weighbridge.invalid/schema.json";
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(LOCATION, schema.clone()).unwrap();
    let compiled = compiler.compile(LOCATION, &mut schemas).unwrap_or_else(|error| panic!("{error:#}"));
    schemas.validate(value, compiled).map_err(|error| format!("{error:#}"))
}

#[test]
fn a_mismatch_is_an_error_with_its_place() {
    let schema = serde_json::json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/count" } },
        "$defs": { "count": { "type": "integer", "minimum": 0 } }, "additionalProperties": false });
    assert_eq!(validate(&schema, &serde_json::json!({ "a": 1 })), Ok(()));
    for wrong in [serde_json::json!({ "a": -1 }), serde_json::json!({ "a": "1" })] {
        let error = validate(&schema, &wrong).unwrap_err();
        assert!(error.contains("/a"), "{error}");
    }
    assert!(validate(&schema, &serde_json::json!({ "b": 1 })).is_err());
}
