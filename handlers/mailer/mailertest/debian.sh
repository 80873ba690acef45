# Runs Debian's Postfix or OpenSMTPD on a port of this machine until standard input ends. It needs
# to be root in a mount namespace and a process namespace of its own. The server sees the files of
# this machine with those of its package, and writes to memory.
#
# Both servers have one mailbox, ada@example.com, and do not relay. Postfix accepts only clients
# that introduce themselves by a full name.
server=$1 package=$2 port=$3 memory=$4
mount -t tmpfs tmpfs "$memory"
# The package's own folder lib would hide the link of the same name.
mkdir "$memory/upper" "$memory/work" "$memory/root"
cp -a "$package/usr" "$package/etc" "$package/var" "$memory/upper"
mount -t overlay overlay -o "lowerdir=/,upperdir=$memory/upper,workdir=$memory/work" "$memory/root"
cd "$memory/root"
mount -t proc proc proc
mount --rbind /dev dev

user() {
	echo "$1:x:$2:$2::/var/empty:/bin/false" >>etc/passwd
	echo "$1:x:$2:" >>etc/group
}

case $server in
postfix)
	user postfix 59991
	user postdrop 59992
	touch etc/postfix/dynamicmaps.cf
	cat >etc/postfix/main.cf <<-END
		compatibility_level = 3.6
		myhostname = mail.example.com
		mydestination = example.com
		inet_interfaces = 127.0.0.1
		inet_protocols = ipv4
		smtpd_helo_required = yes
		smtpd_recipient_restrictions = reject_invalid_helo_hostname, reject_non_fqdn_helo_hostname, reject_unauth_destination
		smtpd_relay_restrictions =
		local_recipient_maps = inline:{{ada@example.com=here}}
		local_transport = discard
		alias_maps =
		maillog_file = /dev/stdout
	END
	cat >etc/postfix/master.cf <<-END
		127.0.0.1:$port inet n - n - - smtpd
		anvil unix - - n - 1 anvil
		bounce unix - - n - 0 bounce
		cleanup unix n - n - 0 cleanup
		defer unix - - n - 0 bounce
		discard unix - - n - - discard
		error unix - - n - - error
		postlog unix-dgram n - n - 1 postlogd
		qmgr unix n - n 300 1 qmgr
		rewrite unix - - n - - trivial-rewrite
		trace unix - - n - 0 bounce
	END
	chown 59991 var/lib/postfix
	cd var/spool/postfix
	queues='active bounce corrupt defer deferred flush hold incoming private saved trace'
	# shellcheck disable=SC2086 # one word for each queue
	mkdir pid $queues && chown 59991 $queues && chmod 700 $queues
	mkdir maildrop public
	chown 59991:59992 maildrop public
	chroot "$memory/root" /usr/lib/postfix/sbin/master -d &
	;;
opensmtpd)
	user opensmtpd 59991
	user opensmtpq 59992
	mkdir -p var/lib/opensmtpd/empty var/spool/smtpd
	chmod 711 var/spool/smtpd
	cat >etc/smtpd.conf <<-END
		table users { "ada@example.com" = "root" }
		listen on 127.0.0.1 port $port hostname mail.example.com
		action deliver mbox virtual <users>
		match from any for domain "example.com" action deliver
	END
	chroot "$memory/root" /usr/sbin/smtpd -d -f /etc/smtpd.conf &
	;;
esac
cat
