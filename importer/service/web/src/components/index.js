// Every component that views share.

export { Action, Failure, useAction } from "./action.jsx";
export { Bar } from "./bar.jsx";
export { Boxes, Area, Choice, Field, Input } from "./field.jsx";
export { Block, Changes, Difference, Source } from "./lines.jsx";
export { Code, Facts, Mark, Section, Soft, SoftWhen, Title, When } from "./text.jsx";
export { CopyButton, Short } from "./copy.jsx";
export { download } from "./download.jsx";
export { Dialog } from "./dialog.jsx";
export { Empty, Pager, Table } from "./table.jsx";
export { HubLink, Link } from "./link.jsx";
export { Palette } from "./palette.jsx";
export { Figures } from "./figures.jsx";
export { Problem } from "./problem.jsx";
export { ChooseSides, Conflicts } from "./conflicts.jsx";
export { Follow, open } from "./progress.jsx";
export { Tabs } from "./tabs.jsx";
export { Working } from "./working.jsx";
export { Toast, say } from "./toast.jsx";
