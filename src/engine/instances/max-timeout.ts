/** Maximum timeout of a command, in seconds: ten years, which stands for none. */
export const maxTimeout = 10 * 365 * 86_400;
