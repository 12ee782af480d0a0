import type { StepOutcome } from "../build-record.ts";

/** The style of a report: plain CSS in one piece, since the page's policy has its hash. */
export const style = `
:root{color-scheme:light dark;--bg:#fafaf8;--card:#fff;--ink:#1d2126;--soft:#5b636d;--line:#e2e3df;--code:#f1f1ed;
--made:#3b6fd4;--cached:#8b97a6;--crit:#a84c06;--failed:#c2283a;--stopped:#7c5cc4;--ok:#20794a;
--l0:#9fb4d8;--l1:#e3b878;--l2:#8fc7a8;--l3:#d9a0b4;--l4:#b5a5dc;--l5:#a9c3c9;--onmap:#14181d}
@media screen and (prefers-color-scheme:dark){:root{--bg:#15181c;--card:#1c2026;--ink:#e7e9ec;--soft:#9da6b1;--line:#2e343c;--code:#262b32;
--made:#6f9cf0;--cached:#7d8998;--crit:#f0a53a;--failed:#f2707d;--stopped:#a98df0;--ok:#58c48b;
--l0:#3d5a8c;--l1:#8a6228;--l2:#34704f;--l3:#8a4a60;--l4:#5d4b93;--l5:#466269;--onmap:#f2f4f6}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:28px 24px 64px}
h1{font-size:30px;line-height:1.15;margin:2px 0 8px;letter-spacing:-.015em;overflow-wrap:anywhere}
h2{font-size:19px;margin:44px 0 12px;letter-spacing:-.01em}
h3{font-size:14px;margin:20px 0 6px}h3 small{font-weight:400}
small,.more,.meta,.brand{color:var(--soft)}small{font-size:13px}
.brand{margin:0;font-size:12px;letter-spacing:.08em;text-transform:uppercase}
.meta{margin:0;display:flex;flex-wrap:wrap;gap:4px 18px}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12.5px}
code{overflow-wrap:anywhere}
pre{background:var(--code);border-radius:6px;padding:10px 12px;margin:8px 0;overflow:auto;max-height:420px;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext}
a{color:var(--made);text-underline-offset:2px}
:focus-visible{outline:2px solid var(--made);outline-offset:2px;border-radius:3px}
.status{font-weight:600}.status.succeeded{color:var(--ok)}.status.failed{color:var(--failed)}.status.interrupted{color:var(--stopped)}
.figures{list-style:none;margin:24px 0 0;padding:0;display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:12px}
.figures li{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;min-width:0}
.figures h2{font-size:13px;font-weight:500;color:var(--soft);margin:0;letter-spacing:0}
.figures .value{font-size:25px;font-weight:600;line-height:1.25;margin:2px 0;letter-spacing:-.015em;font-variant-numeric:tabular-nums}
.figures .more{margin:0;font-size:13px;overflow-wrap:anywhere}.figures .more code{font-size:12px}
.failure{border:1px solid var(--failed);border-left-width:5px;border-radius:8px;padding:4px 18px 12px;margin-top:24px;background:var(--card)}
.failure h2{margin:10px 0 6px;color:var(--failed)}.error{font-weight:600}.hint{background:none;padding:0;color:var(--soft)}
.legend{display:flex;flex-wrap:wrap;gap:6px 20px;margin:0 0 12px;padding:0;list-style:none;font-size:13px;color:var(--soft)}
.legend svg{width:30px;height:14px;vertical-align:-2px;margin-right:7px}
.lanes{display:flex;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 16px 4px}
.names{flex:0 0 auto;max-width:150px;padding-right:14px}
.names span{display:block;height:30px;line-height:30px;font-size:13px;color:var(--soft);white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.lines{flex:1 1 0;min-width:0;overflow:visible;display:block}
.grid{stroke:var(--line)}.tick{fill:var(--soft);font-size:12px}.tick.end{text-anchor:end}
.join{stroke:var(--crit);stroke-width:2}
.wait{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:1.5 3.5;stroke-linecap:round}
rect{rx:2px}rect.made{fill:var(--made)}
rect.cached{fill:none;stroke:var(--cached);stroke-width:1.5}
rect.done{fill:var(--line)}
rect.failed{fill:url(#pf);stroke:var(--failed);stroke-width:1.5}
rect.stopped{fill:url(#ps);stroke:var(--stopped);stroke-width:1.5;stroke-dasharray:4 2}
rect.crit{stroke:var(--crit);stroke-width:2.5;paint-order:stroke}
.pf{stroke:var(--failed)}.ps{stroke:var(--stopped)}
.tools{display:flex;flex-wrap:wrap;gap:8px;margin:0 0 10px}.tools[hidden]{display:none}
.tools input,.tools button{font:inherit;font-size:13px;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:7px;padding:5px 11px}
.tools input{flex:1 1 180px;min-width:0}.tools button[aria-pressed=true]{border-color:var(--made);color:var(--made);font-weight:600}
.s{border-top:1px solid var(--line)}.stage .s:last-of-type{border-bottom:1px solid var(--line)}
.s[hidden]{display:none}
.s>summary{display:grid;grid-template-columns:2.2em minmax(0,1.1fr) minmax(0,1fr) 5.6em 8.6em;gap:0 12px;align-items:center;padding:5px 4px;cursor:pointer;list-style:none}
.s>summary::-webkit-details-marker{display:none}
.s>summary:hover,.s[open]>summary{background:var(--code)}
.n{font-weight:500;color:var(--soft);text-align:right;font-variant-numeric:tabular-nums}
.t{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}.s[open] .t{white-space:normal;overflow-wrap:anywhere}
.b{width:100%;overflow:visible;display:block}
.d{text-align:right;font-variant-numeric:tabular-nums;font-size:13.5px}
.o{font-size:13px;color:var(--soft);white-space:nowrap}.o:before{display:inline-block;width:1.3em;text-align:center}
${sign("made", "●")}${sign("cached", "○")}${sign("failed", "✕")}${sign("stopped", "◼")}${sign("done", "·")}
.made .o:before{color:var(--made)}.failed .o:before{color:var(--failed)}.stopped .o:before{color:var(--stopped)}
.o i{font-style:normal;color:var(--crit);font-weight:600}
.failed .t,.failed .o{color:var(--failed);font-weight:600}
.s>dl,.s>pre,.s>.cut{margin-left:3.2em}.s>pre{margin-bottom:14px}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:3px 18px;margin:8px 0 12px;font-size:14px}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.cut{font-size:13px;color:var(--soft);margin-bottom:10px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px;margin:6px 0 14px}
th{font-weight:500;color:var(--soft);text-align:left}th,td{padding:6px 14px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
.stack td:nth-child(2){min-width:13em}.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.map{width:100%;height:auto;display:block;border-radius:8px;margin:12px 0}
.map text{font-size:13px;fill:var(--onmap);pointer-events:none}
.box{stroke:var(--bg);stroke-width:1}.box.in{fill-opacity:.55;stroke:var(--onmap);stroke-opacity:.35}
.l0 .box,.l0 .f{fill:var(--l0)}.l1 .box,.l1 .f{fill:var(--l1)}.l2 .box,.l2 .f{fill:var(--l2)}.l3 .box,.l3 .f{fill:var(--l3)}.l4 .box,.l4 .f{fill:var(--l4)}.l5 .box,.l5 .f{fill:var(--l5)}
.f{fill:var(--made)}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(330px,1fr));gap:8px 40px}
.tree,.tree ul,.layers{list-style:none;margin:0;padding:0}
.row{display:grid;grid-template-columns:minmax(0,1fr) 26% 5em 3em;gap:10px;align-items:center;padding:3px 0}
.tree ul code{padding-left:1.2em}.tree ul ul code{padding-left:2.4em}.tree ul ul ul code{padding-left:3.6em}summary.row{cursor:pointer}summary.row::marker{content:""}summary.row code:before{content:"▸ ";color:var(--soft)}details[open]>summary.row code:before{content:"▾ "}
.layers li{display:grid;grid-template-columns:22% 5em minmax(0,1fr);gap:2px 12px;align-items:center;padding:4px 0}.layers small{grid-column:3}
.facts{max-width:820px}
footer{margin-top:48px;color:var(--soft);font-size:13px}
.skip{position:absolute;left:-999px}.skip:focus{left:16px;top:8px;background:var(--card);padding:6px 12px}
@media(max-width:720px){main{padding:18px 14px 48px}h1{font-size:24px}.figures{grid-template-columns:1fr 1fr;gap:8px}.figures li{padding:10px 12px}.figures .value{font-size:20px}
.s>summary{grid-template-columns:1.9em minmax(0,1fr) auto;gap:2px 8px}.b{grid-column:2/4;grid-row:2}.d{grid-column:3;grid-row:1}.o{grid-column:2/4;grid-row:3}
.s>dl,.s>pre,.s>.cut{margin-left:0}.names{max-width:82px;padding-right:8px}.lanes{padding:10px 10px 2px}
.stack thead{position:absolute;left:-9999px}.stack tr{display:block;border-bottom:1px solid var(--line);padding:6px 0}.stack td{display:inline;border:0;padding:0 8px 0 0}
.stack td:nth-child(2),.stack td:last-child{display:block;padding:2px 0}.stack td:first-child:before{content:"Step "}.stack td[data-l]:before{content:attr(data-l) " ";color:var(--soft)}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:6px}.map text{font-size:26px;translate:0 10px}.map g g text{display:none}.two{grid-template-columns:1fr}.row{grid-template-columns:minmax(0,1fr) 18% 4.6em 2.6em}}
@media(forced-colors:active){rect.made{fill:GrayText}rect.crit,.join{stroke:CanvasText}}
@media print{:root{color-scheme:light}body{background:#fff;font-size:11pt}.tools,.skip{display:none}main{max-width:none;padding:0}.figures li,.lanes{break-inside:avoid}pre{max-height:none}*{print-color-adjust:exact}}
@media(prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
`;

/** Returns the style of the sign before a step's outcome, which screen readers ignore. Older browsers support only the first form. */
function sign(outcome: StepOutcome, character: string): string {
  return `.${outcome} .o:before{content:"${character}";content:"${character}" / ""}`;
}
