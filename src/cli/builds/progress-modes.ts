/** How `--progress` may be told to show a build. Apart from what shows it: help is to be there at once. */
export const progressModes = ["auto", "tty", "compact", "plain", "json"] as const;
