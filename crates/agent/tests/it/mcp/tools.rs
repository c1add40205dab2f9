use anyhow::Result;
use gleaner_agent::mcp::{Grants, Settings};
use serde_json::{Value, json};

use super::stage::Stage;

#[tokio::test]
async fn every_tool_has_a_valid_schema_that_says_what_each_argument_means() -> Result<()> {
    let stage = Stage::with(Settings { grants: Grants::all(), ..Settings::default() }).await?;
    let assistant = stage.assistant().await?;
    for tool in assistant.list_all_tools().await? {
        let schema = tool.schema_as_json_value();
        assert!(jsonschema::meta::is_valid(&schema), "{}: {schema}", tool.name);
        let validator = jsonschema::validator_for(&schema)?;
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        let properties = schema["properties"].as_object().expect("properties");
        for (name, property) in properties {
            assert!(property["description"].as_str().is_some_and(|text| text.len() > 5), "{}: {name} says nothing: {property}", tool.name);
        }
        // The tool understands what the schema accepts, and refuses what it does not.
        let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert!(!validator.is_valid(&json!({"surprise": 1})), "{}", tool.name);
        assert_eq!(validator.is_valid(&json!({})), required.is_empty(), "{}", tool.name);
        assert!(tool.description.is_some_and(|text| text.len() > 40) && tool.annotations.is_some() && tool.title.is_some());
    }
    Ok(())
}
