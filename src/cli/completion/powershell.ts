/**
 * The completion script of PowerShell. There a word ends at a comma, and PowerShell replaces only its last part. Versions before 7.3
 * do not pass double quotes on: bough understands single ones, too.
 */
export const powershell = String.raw`# PowerShell completion for bough
Register-ArgumentCompleter -Native -CommandName bough -ScriptBlock {
  param($typed, $ast, $cursor)
  $length = [Math]::Max(0, $cursor - $ast.Extent.StartOffset)
  $line = $ast.Extent.Text.PadRight($length).Substring(0, $length)
  $word = ($line -split '\s')[-1]
  $kept = if ($typed -and $word.EndsWith($typed)) { $word.Length - $typed.Length } else { 0 }
  $program = $ast.GetCommandName()
  if (-not (Get-Command -CommandType Application -ErrorAction Ignore $program)) { $program = 'bough' }
  foreach ($candidate in & $program completion candidates '--' $line.Replace('"', "'") 2>$null) {
    $text, $description = $candidate -split "\t", 2
    if (-not $text) { continue }
    if ($text -notin ':files', ':directories', ':named-files') {
      if (-not $description) { $description = $text }
      $rest = $text.Substring([Math]::Min($kept, $text.Length))
      if ($rest) { [Management.Automation.CompletionResult]::new($rest, $text, 'ParameterValue', $description) }
      continue
    }
    $before = if ($text -eq ':named-files') { '^.*?[:=](?=[A-Za-z]:[\\/])|^.*[:=]' } else { '^-[^=]*=' }
    $start = if ($word -match $before) { $Matches[0] } else { '' }
    foreach ($path in [Management.Automation.CompletionCompleters]::CompleteFilename($word.Substring($start.Length))) {
      if ($text -eq ':directories' -and $path.ResultType -ne 'ProviderContainer') { continue }
      $whole = $start + $path.CompletionText
      $rest = $whole.Substring([Math]::Min($kept, $whole.Length))
      [Management.Automation.CompletionResult]::new($rest, $path.ListItemText, $path.ResultType, $path.ToolTip)
    }
  }
}
`;
