# A strict reader of JSON that somebody else wrote: JSON::PP, which comes with perl.
#
#	json_reference.pl make SEED COUNT        texts at random, a line each, good ones and damaged ones
#	json_reference.pl compare TEXTS AGAIN    does json_again understand what JSON::PP understands?
use strict;
use warnings;
use JSON::PP;

my $reader = JSON::PP->new->utf8->allow_nonref->max_depth(64);
my $writer = JSON::PP->new->utf8->allow_nonref->canonical;

sub some { return $_[int(rand(@_))] }

sub number {
	return some(0, -0.5, '1e5', '-2.25E-3', 18446744073709551615, -9223372036854775808,
		int(rand(1e6)), int(rand(1e15)), 9007199254740993, '0.1', 7);
}

sub string {
	my @parts = ('a', 'coll_perf', ' ', '\\n', '\\"', '\\\\', '\\/', '\\u00e9', '\\ud83d\\ude00', "\xc3\xa9",
		"\xf0\x9f\x98\x80", 'x' x int(rand(20)), '12345678', '}', ']', ',', ':');
	return '"' . join('', map { some(@parts) } 0 .. int(rand(6))) . '"';
}

sub blank { return rand() < 0.1 ? some(' ', "\t", '  ', "\r") : '' }

sub value {
	my $depth = shift;
	my $kind = $depth > 5 ? int(rand(6)) : int(rand(10));
	return number() if $kind < 3;
	return string() if $kind < 5;
	return some('true', 'false', 'null') if $kind < 6;
	my @items = map { value($depth + 1) } 1 .. int(rand(5));
	return '[' . blank() . join(blank() . ',' . blank(), @items) . blank() . ']' if $kind < 8;
	my $n = 0;
	return '{' . blank() . join(blank() . ',' . blank(),
		map { '"k' . $n++ . '"' . blank() . ':' . blank() . $_ } @items) . blank() . '}';
}

# No line ends within a line, and no lone surrogates: there the two readers differ on purpose.
sub damage {
	my $text = shift;
	for (0 .. int(rand(2))) {
		my $at = int(rand(length($text) + 1));
		my $how = int(rand(4));
		substr($text, $at, 1) = '' if $how == 0 && $at < length($text);
		substr($text, $at, 0) = some('"', '\\', ',', '}', ']', '{', '[', ':', '0', '-', '.', 'e', "\x80", "\xff", "\x01", 'u')
			if $how == 1;
		substr($text, $at) = '' if $how == 2;
		substr($text, $at, 1) = chr(int(rand(256))) if $how == 3 && $at < length($text);
	}
	$text =~ tr/\n\0//d;
	$text =~ s/\\u[dD][89a-fA-F]..//g;
	return $text;
}

my $command = shift;
if ($command eq 'make') {
	my ($seed, $count) = @ARGV;
	srand($seed);
	for (1 .. $count) {
		my $text = value(0);
		print $_ % 2 ? $text : damage($text), "\n";
	}
	exit 0;
}

my ($texts, $again) = @ARGV;
open(my $in, '<:raw', $texts) or die "$texts: $!";
open(my $out, '<:raw', $again) or die "$again: $!";
my ($lines, $refused, $wrong) = (0, 0, 0);
while (defined(my $text = <$in>)) {
	my $got = <$out> // "nothing\n";
	chomp $text;
	chomp $got;
	$lines++;
	my $wanted = eval { $writer->encode($reader->decode($text)) };
	my $is_refused = !defined $wanted;
	$refused += $is_refused;
	my $same = $is_refused ? $got eq 'refused'
		: $got ne 'refused' && (eval { $writer->encode($reader->decode($got)) } // '') eq $wanted;
	next if $same;
	$wrong++;
	print "line $lines: $text\n  got: $got\n  wanted: ", $wanted // "refused: $@", "\n" if $wrong < 5;
}
print "$lines lines, $refused refused, $wrong wrong\n";
exit($wrong > 0 || $refused < $lines / 10 || $refused > $lines * 9 / 10);
