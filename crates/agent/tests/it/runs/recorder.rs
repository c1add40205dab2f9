//! What Chrome's Recorder exports is replayed as it is.

use anyhow::Result;
use serde_json::json;

use super::world::World;

/// Every kind of selector and step that changes something: shadow roots, frames, accessible names, keys, positions.
#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_chromes_recorder_is_replayed() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let page = format!("{}/widgets", world.site());
    let recording = json!({"title": "Widgets", "timeout": 3000, "steps": [
        {"type": "setViewport", "width": 900, "height": 600, "deviceScaleFactor": 1, "isMobile": false, "hasTouch": false, "isLandscape": false},
        {"type": "navigate", "url": page, "assertedEvents": [{"type": "navigation", "url": page, "title": "Widgets"}]},
        {"type": "click", "target": "main", "selectors": [["#gone"], ["aria/Press me[role=\"button\"]"]], "offsetX": 3, "offsetY": 3},
        {"type": "click", "selectors": [["#host", "button"]], "offsetX": 3, "offsetY": 3},
        {"type": "click", "selectors": [["pierce/#gone"], ["text/In the frame"]], "frame": [0], "offsetX": 3, "offsetY": 3},
        {"type": "change", "selectors": [["aria/Say it"]], "value": "Ünlü 🎉"},
        {"type": "change", "selectors": [["#pick"]], "value": "2"},
        {"type": "change", "selectors": [["#range"]], "value": "7"},
        {"type": "doubleClick", "selectors": [["xpath///*[@id=\"twice\"]"]], "offsetX": 3, "offsetY": 3},
        {"type": "hover", "selectors": [["#over"]]},
        {"type": "click", "selectors": [["#keys"]], "offsetX": 3, "offsetY": 3},
        {"type": "keyDown", "key": "Enter"},
        {"type": "keyUp", "key": "Enter"},
        {"type": "click", "selectors": [["#map"]], "offsetX": 80, "offsetY": 10},
        {"type": "scroll", "x": 0, "y": 500},
        {"type": "waitForExpression", "expression": "window.scrollY > 0"},
        {"type": "waitForElement", "selectors": ["#say"], "operator": "==", "count": 1, "properties": {"value": "Ünlü 🎉"}},
        {"type": "click", "selectors": [["#link"]], "offsetX": 3, "offsetY": 3, "assertedEvents": [{"type": "navigation", "url": format!("{page}#end")}]},
        {"type": "customStep", "name": "x", "parameters": {}},
        {"do": "assert", "selector": "#done", "text": "pressed shadowed framed picked 2 ranged 7 doubled hovered key Enter at 80", "exact": true},
    ]});
    let run = world.submit(recording, None).await?;
    let row = world.until_ended(&run).await?;
    let rows = world.rows(&run).await?;
    assert_eq!(row["result"]["outcome"], "passed", "{rows:?}");
    assert_eq!(rows[0]["steps"][2]["selector"], "aria/Press me[role=\"button\"]", "the selector that matched is named");
    agent.stop().await?;
    Ok(())
}

/// The page must be the one that was recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_navigation_to_another_page_than_the_recorded_one_fails() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let recording = json!({"title": "Elsewhere", "timeout": 500, "steps": [
        {"type": "navigate", "url": world.site(), "assertedEvents": [{"type": "navigation", "url": format!("{}/other", world.site()), "title": "Other"}]}]});
    let run = world.submit(recording, None).await?;
    world.until_ended(&run).await?;
    let error = world.rows(&run).await?[0]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("the page is") && error.contains("\"Order\"") && error.contains("/other"), "{error}");
    agent.stop().await?;
    Ok(())
}
