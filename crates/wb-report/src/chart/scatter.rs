//! Draws measured points and the line that is fitted to them.

use wb_model::Unit;

use super::curve::{AxisNames, draw_axes, path_data};
use super::element::Element;
use super::scale::Scale;
use super::{Chart, Drawing};

#[derive(Debug, Clone)]
pub struct ScatterChart {
    pub title: String,
    /// Quantity and unit of the x axis.
    pub x: (String, Unit),
    /// Quantity and unit of the y axis.
    pub y: (String, Unit),
    pub points: Vec<(f64, f64)>,
    /// Points that the line is not fitted to.
    pub rejected: Vec<(f64, f64)>,
    pub line: Vec<(f64, f64)>,
}

const TOP: f64 = 18.0;
const BELOW: f64 = 36.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const RADIUS: f64 = 2.6;

impl ScatterChart {
    fn all(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.points.iter().chain(&self.rejected).chain(&self.line)
    }
}

impl Chart for ScatterChart {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let point = |(x, y): &(f64, f64)| format!("{} at {}", self.y.1.quantity(*y), self.x.1.quantity(*x));
        let line: Vec<String> = self.line.iter().map(point).collect();
        format!("{} points; fitted line: {}", self.points.len() + self.rejected.len(), line.join(", "))
    }

    fn draw(&self, width: f64) -> Drawing {
        let height = (width * 0.5).clamp(180.0, 320.0);
        let (right, bottom) = (width - RIGHT, height - BELOW);
        let last = self.all().fold(0.0, |last: f64, (x, _)| last.max(*x));
        let x = Scale::linear_between(&self.x.1, 0.0, last * 1.05).with_range(LEFT, right);
        let y = Scale::fit(&self.y.1, self.all().map(|(_, y)| *y), 0.1).with_range(bottom, TOP);
        let at = |(px, py): &(f64, f64)| (x.position(*px), y.position(*py));
        let mut body = draw_axes(&x, &y, AxisNames { x: &self.x.0, y: &self.y.0 }, (right, bottom));
        body.push(Element::path("curve l0", path_data(self.line.iter().map(at))));
        body.extend(self.points.iter().map(|point| Element::circle("point l0", at(point), RADIUS)));
        for point in &self.rejected {
            let (cx, cy) = at(point);
            body.push(Element::line("invalid", (cx - RADIUS, cy - RADIUS), (cx + RADIUS, cy + RADIUS)));
            body.push(Element::line("invalid", (cx - RADIUS, cy + RADIUS), (cx + RADIUS, cy - RADIUS)));
        }
        Drawing { width, height, body }
    }
}
