/** The script of a report: it opens the targets of links, filters the list of steps, and opens the important ones before printing. */
export const script = `
const $=(s)=>document.querySelectorAll(s),tools=document.getElementById("tools"),find=document.getElementById("find");
const steps=[...$("details.s")];
const open=()=>{let at=null;try{at=document.getElementById(decodeURIComponent(location.hash.slice(1)))}catch{}
if(at&&at.matches("details.s")){at.hidden=false;at.open=true;at.querySelector("summary").focus({preventScroll:true});at.scrollIntoView({block:"center"})}};
addEventListener("hashchange",open);
document.addEventListener("click",(e)=>{const a=e.target.closest("a[href^='#s']");if(a&&a.getAttribute("href")===location.hash)open()});
if(tools&&steps.length>1){tools.hidden=false;let kind="all";
const buttons=[...tools.querySelectorAll("button[data-kind]")];
const show=()=>{const text=find.value.toLowerCase();let count=0;
for(const step of steps){const is=(kind==="all"||step.classList.contains(kind))&&(text===""||step.textContent.toLowerCase().includes(text));step.hidden=!is;if(is)count++}
document.getElementById("count").textContent=count===steps.length?"":count+" of "+steps.length+" steps"};
for(const button of buttons)button.addEventListener("click",()=>{kind=button.dataset.kind;for(const each of buttons)each.setAttribute("aria-pressed",String(each===button));show()});
find.addEventListener("input",show);
document.getElementById("unfold").addEventListener("click",(e)=>{const isOpen=steps.some((s)=>!s.hidden&&!s.open);for(const step of steps)if(!step.hidden)step.open=isOpen})}
document.addEventListener("keydown",(e)=>{const at=e.target.closest&&e.target.closest("details.s");
if(at&&e.key==="Escape"){at.open=false;at.querySelector("summary").focus();return}
if(!at||(e.key!=="ArrowDown"&&e.key!=="ArrowUp")||!e.target.matches("summary"))return;
const shown=steps.filter((s)=>!s.hidden),next=shown[shown.indexOf(at)+(e.key==="ArrowDown"?1:-1)];if(next){next.querySelector("summary").focus();e.preventDefault()}});
addEventListener("beforeprint",()=>{for(const step of $("details.s.failed,details.s.crit"))step.open=true});
open();
`;
