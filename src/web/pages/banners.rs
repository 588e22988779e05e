//! The section of a page that shows its banners and their embed codes for forums and websites.

use std::borrow::Cow;

use maud::{Markup, html};

use super::layout::folded;
use crate::web::PublicUrl;
use crate::web::banners::{BannerFormat, BannerSize, banner_path};
use crate::web::texts::text;

/// The section of the page of a server or a player. `page` is the path of the page, and `alt`
/// describes the image.
pub(super) fn section(public_url: &PublicUrl, page: &str, alt: &str) -> Markup {
    let content = html! {
        p .soft { (text!("banners-frame")) }
        (field(&text!("banners-frame-html"), "frame", &frame_code(public_url, page, alt)))
        p .soft { (text!("banners-codes")) }
        @for size in BannerSize::EMBEDDED {
            // Browsers do not load the image of a closed section.
            details open[size == BannerSize::EMBEDDED[0]] {
                @let (width, height) = size.pixels();
                summary { (text!("banners-size", size = title(size), width = width, height = height)) }
                p { img src=(banner_path(page, size, BannerFormat::Svg)) alt=(alt) width=(width) height=(height) loading="lazy"; }
                @let id = |language: &str| format!("banner-{}-{language}", size.name());
                (field(&text!("banners-html", size = title(size)), &id("html"), &html_code(public_url, page, size, alt)))
                (field(&text!("banners-bbcode", size = title(size)), &id("bbcode"), &bbcode(public_url, page, size)))
            }
        }
    };
    folded(&text!("banners-heading"), false, content)
}

fn title(size: BannerSize) -> Cow<'static, str> {
    match size {
        BannerSize::Wide => text!("banners-wide"),
        BannerSize::Box => text!("banners-box"),
        BannerSize::Small => text!("banners-small"),
        BannerSize::Card => text!("banners-card"),
    }
}

fn field(title: &str, id: &str, code: &str) -> Markup {
    html! {
        p .code {
            label for=(id) { (title) }
            input #(id) readonly value=(code) data-copy;
        }
    }
}

fn frame_code(public_url: &PublicUrl, page: &str, alt: &str) -> String {
    let frame = html! { iframe src={ (public_url) "/embed" (page) } width="400" height="500" title=(alt) {} };
    frame.into_string()
}

fn html_code(public_url: &PublicUrl, page: &str, size: BannerSize, alt: &str) -> String {
    let (width, height) = size.pixels();
    let image = banner_path(page, size, BannerFormat::Png);
    let code = html! {
        a href={ (public_url) (page) } { img src={ (public_url) (image) } width=(width) height=(height) alt=(alt); }
    };
    code.into_string()
}

fn bbcode(public_url: &PublicUrl, page: &str, size: BannerSize) -> String {
    let image = banner_path(page, size, BannerFormat::Png);
    format!("[url={public_url}{page}][img]{public_url}{image}[/img][/url]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embed_code_links_page_and_image() {
        let site = &"https://games.example".parse().expect("valid");
        let page = "/servers/quake3://192.0.2.7:27960";
        let bbcode = bbcode(site, page, BannerSize::Wide);
        assert_eq!(
            bbcode,
            "[url=https://games.example/servers/quake3://192.0.2.7:27960]\
             [img]https://games.example/banners/wide/servers/quake3://192.0.2.7:27960.png[/img][/url]"
        );
        let html = html_code(site, "/players/7", BannerSize::Small, "Player \"><b>");
        assert_eq!(
            html,
            "<a href=\"https://games.example/players/7\"><img src=\"https://games.example/banners/small/players/7.png\" \
             width=\"160\" height=\"40\" alt=\"Player &quot;&gt;&lt;b&gt;\"></a>"
        );
        let section = section(site, "/players/7", "Player \"><b>").into_string();
        assert!(!section.contains("<b>") && section.contains("&amp;quot;&amp;gt;&amp;lt;b&amp;gt;"), "{section}");
    }
}
