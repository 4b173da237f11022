//! Documents of text and charts, in PDF.
//!
//! A chart is drawn as SVG, as for pages and images, and its shapes are written as vectors. Texts become shapes, too,
//! so that no font is embedded. The conversion supports what our charts use: paths, colours, opacity, dashes and
//! transforms. svg2pdf and krilla (evaluated: 0.13 and 0.8) convert any SVG, but need another version of usvg, and a
//! newer compiler than the one that is required.

use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, Str};
use resvg::tiny_skia::{PathSegment, Transform};
use resvg::usvg::{self, Group, Node, Paint, Tree};

use super::png::parse_svg;
use super::{Chart, svg};

/// A4 in points.
const PAGE: (f32, f32) = (595.0, 842.0);
const MARGIN: f32 = 36.0;
/// Charts side by side.
const COLUMNS: usize = 2;
const GAP: f32 = 12.0;
/// Width in pixels for which a chart is drawn.
const CHART_WIDTH: f64 = 420.0;
/// Size of the text, whose font every reader has.
const FONT_SIZE: f32 = 6.5;
const LEADING: f32 = 8.5;
/// Width of a character, relative to the font size.
const CHARACTER: f32 = 0.6;
const FONT: Name<'static> = Name(b"F");

/// The SVG of a chart cannot be parsed: a bug of this program.
#[derive(Debug, thiserror::Error)]
#[error("cannot parse the chart: {0}")]
pub struct PdfError(#[from] usvg::Error);

pub fn pdf(text: &str, charts: &[&dyn Chart]) -> Result<Vec<u8>, PdfError> {
    let mut document = Document::default();
    document.add_text(text);
    let trees: Result<Vec<Tree>, _> = charts.iter().map(|chart| parse_svg(&svg(*chart, CHART_WIDTH))).collect();
    document.add_charts(&trees?);
    Ok(document.finish())
}

#[derive(Default)]
struct Document {
    pages: Vec<Content>,
    /// Opacities of fills and strokes, in the order of their names.
    opacities: Vec<f32>,
}

impl Document {
    /// Adds lines in a monospaced font; long ones are broken.
    fn add_text(&mut self, text: &str) {
        let width = ((PAGE.0 - 2.0 * MARGIN) / (FONT_SIZE * CHARACTER)) as usize;
        let lines: Vec<String> = text.lines().flat_map(|line| broken(line, width)).collect();
        let per_page = ((PAGE.1 - 2.0 * MARGIN) / LEADING) as usize;
        for lines in lines.chunks(per_page) {
            let mut content = Content::new();
            content.begin_text();
            content.set_font(FONT, FONT_SIZE).set_leading(LEADING);
            content.next_line(MARGIN, PAGE.1 - MARGIN - FONT_SIZE);
            for line in lines {
                content.show(Str(line.as_bytes())).next_line_using_leading();
            }
            content.end_text();
            self.pages.push(content);
        }
    }

    /// Adds charts in columns, as many on a page as fit.
    fn add_charts(&mut self, charts: &[Tree]) {
        let width = (PAGE.0 - 2.0 * MARGIN - GAP) / COLUMNS as f32;
        let mut top = 0.0;
        for row in charts.chunks(COLUMNS) {
            let scale = |chart: &Tree| width / chart.size().width();
            let height = row.iter().map(|chart| chart.size().height() * scale(chart)).fold(0.0, f32::max);
            if self.pages.is_empty() || top - height < MARGIN {
                self.pages.push(Content::new());
                top = PAGE.1 - MARGIN;
            }
            for (chart, left) in row.iter().zip([MARGIN, MARGIN + width + GAP]) {
                self.add_chart(chart, [scale(chart), 0.0, 0.0, -scale(chart), left, top]);
            }
            top -= height + GAP;
        }
    }

    /// Draws a chart on the last page. SVG's vertical axis points down, PDF's up.
    fn add_chart(&mut self, chart: &Tree, placement: [f32; 6]) {
        let Some(mut content) = self.pages.pop() else { return };
        content.save_state().transform(placement);
        self.draw_group(&mut content, chart.root());
        content.restore_state();
        self.pages.push(content);
    }

    fn draw_group(&mut self, content: &mut Content, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.draw_group(content, group),
                Node::Path(path) if path.is_visible() => self.draw_path(content, path),
                Node::Text(text) => self.draw_group(content, text.flattened()),
                // Charts have no images.
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }

    fn draw_path(&mut self, content: &mut Content, path: &usvg::Path) {
        content.save_state();
        let Transform { sx, kx, ky, sy, tx, ty } = path.abs_transform();
        content.transform([sx, ky, kx, sy, tx, ty]);
        if let Some((fill, [r, g, b])) = path.fill().and_then(|fill| Some((fill, colour(fill.paint())?))) {
            content.set_fill_rgb(r, g, b).set_parameters(Name(self.opacity(fill.opacity().get()).as_bytes()));
            trace(content, path);
            match fill.rule() {
                usvg::FillRule::NonZero => content.fill_nonzero(),
                usvg::FillRule::EvenOdd => content.fill_even_odd(),
            };
        }
        if let Some((stroke, [r, g, b])) = path.stroke().and_then(|stroke| Some((stroke, colour(stroke.paint())?))) {
            content.set_stroke_rgb(r, g, b).set_line_width(stroke.width().get());
            content.set_parameters(Name(self.opacity(stroke.opacity().get()).as_bytes()));
            content.set_dash_pattern(stroke.dasharray().unwrap_or_default().iter().copied(), stroke.dashoffset());
            trace(content, path);
            content.stroke();
        }
        content.restore_state();
    }

    /// The name of the graphics state with an opacity.
    fn opacity(&mut self, opacity: f32) -> String {
        let known = self.opacities.iter().position(|other| *other == opacity);
        let index = known.unwrap_or_else(|| {
            self.opacities.push(opacity);
            self.opacities.len() - 1
        });
        opacity_name(index)
    }

    fn finish(self) -> Vec<u8> {
        let mut next = 0;
        let mut new_ref = || {
            next += 1;
            Ref::new(next)
        };
        let (catalog, tree, font) = (new_ref(), new_ref(), new_ref());
        let pages: Vec<(Ref, Ref)> = self.pages.iter().map(|_| (new_ref(), new_ref())).collect();
        let states: Vec<Ref> = self.opacities.iter().map(|_| new_ref()).collect();
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(tree);
        pdf.pages(tree).kids(pages.iter().map(|(page, _)| *page)).count(pages.len() as i32);
        pdf.type1_font(font).base_font(Name(b"Courier"));
        for (state, opacity) in states.iter().zip(&self.opacities) {
            pdf.ext_graphics(*state).non_stroking_alpha(*opacity).stroking_alpha(*opacity);
        }
        for ((page, content), drawn) in pages.into_iter().zip(self.pages) {
            let mut written = pdf.page(page);
            written.media_box(Rect::new(0.0, 0.0, PAGE.0, PAGE.1)).parent(tree).contents(content);
            let mut resources = written.resources();
            resources.fonts().pair(FONT, font);
            let mut named = resources.ext_g_states();
            for (index, state) in states.iter().enumerate() {
                named.pair(Name(opacity_name(index).as_bytes()), *state);
            }
            named.finish();
            resources.finish();
            written.finish();
            pdf.stream(content, &drawn.finish());
        }
        pdf.finish()
    }
}

fn opacity_name(index: usize) -> String {
    format!("O{index}")
}

/// A plain colour; charts have no others.
fn colour(paint: &Paint) -> Option<[f32; 3]> {
    match paint {
        Paint::Color(colour) => Some([colour.red, colour.green, colour.blue].map(|part| f32::from(part) / 255.0)),
        Paint::LinearGradient(_) | Paint::RadialGradient(_) | Paint::Pattern(_) => None,
    }
}

fn trace(content: &mut Content, path: &usvg::Path) {
    let mut last = (0.0, 0.0);
    for segment in path.data().segments() {
        match segment {
            PathSegment::MoveTo(to) => {
                content.move_to(to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::LineTo(to) => {
                content.line_to(to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::QuadTo(control, to) => {
                // PDF has cubic curves only.
                let towards = |end: (f32, f32)| {
                    (end.0 + (control.x - end.0) * 2.0 / 3.0, end.1 + (control.y - end.1) * 2.0 / 3.0)
                };
                let (first, second) = (towards(last), towards((to.x, to.y)));
                content.cubic_to(first.0, first.1, second.0, second.1, to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::CubicTo(first, second, to) => {
                content.cubic_to(first.x, first.y, second.x, second.y, to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::Close => drop(content.close_path()),
        }
    }
}

/// Breaks a line into parts of a width; characters that the font lacks become `?`.
fn broken(line: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = line.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    if characters.is_empty() {
        vec![String::new()]
    } else {
        characters.chunks(width).map(|part| part.iter().collect()).collect()
    }
}
